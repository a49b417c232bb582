// Measures how late the extension host's loop is: from when `start` appears in the folder until `stop` does.
const fs = require('node:fs');
const path = require('node:path');
const { monitorEventLoopDelay } = require('node:perf_hooks');

exports.activate = () => {
  const folder = process.env.KW_LOOP_FOLDER;
  if (folder === undefined) return;
  let monitor;
  const watcher = fs.watch(folder, (_event, name) => {
    if (name === 'start' && !monitor) {
      monitor = monitorEventLoopDelay({ resolution: 1 });
      monitor.enable();
      fs.writeFileSync(path.join(folder, 'started'), '');
    } else if (name === 'stop' && monitor) {
      monitor.disable();
      const ms = (value) => value / 1e6;
      const result = {
        p50: ms(monitor.percentile(50)),
        p99: ms(monitor.percentile(99)),
        max: ms(monitor.max),
        rss: process.memoryUsage().rss,
      };
      monitor = undefined;
      fs.writeFileSync(path.join(folder, 'result.json.part'), JSON.stringify(result));
      fs.renameSync(path.join(folder, 'result.json.part'), path.join(folder, 'result.json'));
    }
  });
  return { dispose: () => watcher.close() };
};
