-- A database as schema version 1 made it, with a finished and an interrupted run. Never edited after a release.
CREATE TABLE runs (
  id             TEXT NOT NULL PRIMARY KEY,     -- sorts by time of creation
  kind           TEXT NOT NULL,                 -- optimize, tune, auto, search, session, …
  status         TEXT NOT NULL,                 -- queued, running, paused, finished, failed, cancelled
  created        INTEGER NOT NULL,
  updated        INTEGER NOT NULL,
  request        TEXT NOT NULL,                 -- JSON: what was asked for
  reference      TEXT NOT NULL,                 -- JSON: reference, inputs, seeds, tolerances; fixed once set
  reference_hash TEXT NOT NULL,                 -- SHA-256 of it; '' until it is set
  chips          TEXT NOT NULL,                 -- JSON array of names
  result         TEXT NOT NULL,                 -- JSON; null until the end
  client         TEXT NOT NULL,                 -- who asked: cli, vscode, mcp, …
  owner          TEXT NOT NULL                  -- process that drives it: boot:pid:start
) STRICT;
CREATE INDEX runs_by_status ON runs (status);

CREATE TRIGGER runs_reference_is_frozen
BEFORE UPDATE OF reference, reference_hash ON runs
WHEN OLD.reference_hash <> '' AND (NEW.reference_hash <> OLD.reference_hash OR NEW.reference <> OLD.reference)
BEGIN
  SELECT RAISE(ABORT, 'the reference of a run is frozen');
END;

CREATE TABLE candidates (
  run          TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  number       INTEGER NOT NULL,                -- 3 for "c3"
  parents      TEXT NOT NULL,                   -- JSON array of ids
  status       TEXT NOT NULL,
  what         TEXT NOT NULL,                   -- one line for people
  edits        TEXT NOT NULL,                   -- JSON
  content_hash TEXT NOT NULL,                   -- SHA-256 of the candidate's source
  result       TEXT NOT NULL,                   -- JSON: gate, estimate_ms, why, …
  created      INTEGER NOT NULL,
  updated      INTEGER NOT NULL,
  PRIMARY KEY (run, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX candidates_by_content ON candidates (run, content_hash);

CREATE TABLE evaluations (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  run         TEXT NOT NULL,
  candidate   INTEGER NOT NULL,
  chip        TEXT NOT NULL,                    -- '' when the stage has no chip
  stage       TEXT NOT NULL,                    -- compile, check, estimate, …
  attempt     INTEGER NOT NULL,
  status      TEXT NOT NULL,                    -- pass, fail, not_run
  gate        TEXT NOT NULL,                    -- the gate that decided, '' if none
  reason      TEXT NOT NULL,
  result      TEXT NOT NULL,                    -- JSON
  evidence    TEXT NOT NULL,                    -- JSON: class, chip, versions
  duration_ms INTEGER NOT NULL,
  reported    INTEGER NOT NULL,                 -- 1: a client may have seen it, so it never changes
  created     INTEGER NOT NULL,
  UNIQUE (run, candidate, chip, stage, attempt),
  FOREIGN KEY (run, candidate) REFERENCES candidates (run, number) ON DELETE CASCADE
) STRICT;

CREATE TABLE approvals (
  id        INTEGER PRIMARY KEY AUTOINCREMENT,
  run       TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  step      TEXT NOT NULL,
  step_hash TEXT NOT NULL,                      -- SHA-256 of the step's content: an approval holds for nothing else
  decision  TEXT NOT NULL,                      -- approved, rejected
  scope     TEXT NOT NULL,                      -- once, plan, session, always
  who       TEXT NOT NULL,                      -- a person, or a rule by name
  time      INTEGER NOT NULL
) STRICT;
CREATE INDEX approvals_by_step ON approvals (run, step_hash);

CREATE TABLE events (
  seq     INTEGER PRIMARY KEY AUTOINCREMENT,    -- global, never given twice
  run     TEXT NOT NULL,                        -- '' for what concerns the daemon as a whole
  time    INTEGER NOT NULL,
  kind    TEXT NOT NULL,
  payload TEXT NOT NULL                         -- JSON
) STRICT;
CREATE INDEX events_by_run ON events (run, seq);

CREATE TABLE meta (
  key   TEXT NOT NULL PRIMARY KEY,
  value TEXT NOT NULL
) STRICT;

INSERT INTO runs VALUES ('01hf7yat00aaaaaa', 'tune', 'finished', 1700000000000, 1700000060000,
  '{"file":"k.py","function":"matmul"}', '{"seed":7,"source":"def matmul(x, y): ..."}', 'abc123', '["v5e","v6e"]',
  '{"status":"improved","speedup":12.5}', 'cli', 'boot:100:5000');
INSERT INTO runs VALUES ('01hf7yc0m0bbbbbb', 'auto', 'running', 1700000100000, 1700000100000,
  '{"file":"k.py","function":"softmax"}', 'null', '', '["v5e"]', 'null', 'vscode', 'boot:101:6000');
INSERT INTO candidates VALUES ('01hf7yat00aaaaaa', 0, '[]', 'kept', 'the original', 'null', 'h0', 'null', 1700000001000, 1700000001000);
INSERT INTO candidates VALUES ('01hf7yat00aaaaaa', 1, '["c0"]', 'best', 'blocks 512', '{"old":"128","new":"512"}', 'h1',
  '{"estimate_ms":0.89}', 1700000002000, 1700000050000);
INSERT INTO evaluations VALUES (1, '01hf7yat00aaaaaa', 1, 'v5e', 'compile', 0, 'pass', '', '', '{}', '{"class":"compiled"}', 900, 1, 1700000003000);
INSERT INTO evaluations VALUES (2, '01hf7yat00aaaaaa', 1, 'v6e', 'compile', 0, 'fail', 'G23', 'VMEM limit exceeded', '{}', '{"class":"compiled"}', 700, 1, 1700000004000);
INSERT INTO approvals VALUES (1, '01hf7yc0m0bbbbbb', 's1', 'feed', 'approved', 'once', 'alice', 1700000101000);
INSERT INTO events VALUES (1, '', 1700000000000, 'daemon_started', '{}');
INSERT INTO events VALUES (2, '01hf7yat00aaaaaa', 1700000000001, 'run_started', '{"kind":"tune"}');
INSERT INTO events VALUES (7, '01hf7yc0m0bbbbbb', 1700000100001, 'run_started', '{"kind":"auto"}');
INSERT INTO meta VALUES ('daemon_id', 'x');
PRAGMA user_version = 1;
PRAGMA application_id = 1264014164;
