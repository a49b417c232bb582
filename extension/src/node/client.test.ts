// The client against a daemon in this process, over a real socket: token, cookie, errors with remedies, streams and their end.
import * as grpc from '@grpc/grpc-js';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { CheckEvent } from '../generated/kernelwright/v1/check';
import { Event } from '../generated/kernelwright/v1/run';
import {
  ErrorDetail,
  HandshakeReply,
  KernelwrightService,
  StartRunReply,
  type StartRunRequest,
} from '../generated/kernelwright/v1/session';
import { DaemonClient } from './client';
import { CallError } from './errors';

const token = 'a'.repeat(64);
const cookie = 'b'.repeat(64);
const identity = { version: '0.1.0', build: 5, commit: 'c', protocolMin: 1, protocolMax: 1 };

let folder: string;
let server: grpc.Server;
let client: DaemonClient;
let replyCookie = cookie;
let minProtocol = 1;
let tokens: (string | Buffer | undefined)[] = [];
let started: StartRunRequest[] = [];
let cancelled: Promise<void>;

type Handlers = grpc.UntypedServiceImplementation;

const handlers: Handlers = {
  handshake: (call: grpc.ServerUnaryCall<unknown, HandshakeReply>, callback: grpc.sendUnaryData<HandshakeReply>) => {
    tokens.push(call.metadata.get('kernelwright-token')[0]);
    callback(
      null,
      HandshakeReply.fromPartial({ cookie: replyCookie, version: '9', build: 9, minProtocolVersion: minProtocol }),
    );
  },
  startRun: (
    call: grpc.ServerUnaryCall<StartRunRequest, StartRunReply>,
    callback: grpc.sendUnaryData<StartRunReply>,
  ) => {
    started.push(call.request);
    if (call.request.function === 'gone') {
      const metadata = new grpc.Metadata();
      const detail = ErrorDetail.fromPartial({
        kind: 'environment',
        message: 'no jax',
        where: '/py',
        remedy: 'install it',
      });
      metadata.set('grpc-status-details-bin', Buffer.from(ErrorDetail.encode(detail).finish()));
      callback({ code: grpc.status.FAILED_PRECONDITION, details: 'no jax', metadata });
      return;
    }
    callback(null, StartRunReply.fromPartial({ run: 'r1' }));
  },
  check: (call: grpc.ServerWritableStream<unknown, CheckEvent>) => {
    cancelled = new Promise((resolve) => call.on('cancelled', resolve));
    call.write(CheckEvent.fromPartial({ kind: { $case: 'stage', stage: { stage: 'syntax', status: 'done' } } }));
  },
  watchEvents: (call: grpc.ServerWritableStream<{ sinceSequence: number }, Event>) => {
    for (let sequence = call.request.sinceSequence + 1; sequence <= 3; sequence++) {
      call.write(Event.fromPartial({ sequence, run: 'r1' }));
    }
    call.end();
  },
};

beforeEach(async () => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'kw-client-'));
  replyCookie = cookie;
  minProtocol = 1;
  tokens = [];
  started = [];
  server = new grpc.Server();
  const missing = Object.keys(KernelwrightService).filter((name) => !(name in handlers));
  const rest = Object.fromEntries(missing.map((name) => [name, () => undefined]));
  server.addService(KernelwrightService, { ...rest, ...handlers });
  const socket = path.join(folder, 's');
  await new Promise<void>((resolve, reject) => {
    server.bindAsync(`unix:${socket}`, grpc.ServerCredentials.createInsecure(), (error) =>
      error ? reject(error) : resolve(),
    );
  });
  client = new DaemonClient({ socket, token, cookie, pid: 1, startMs: 1, version: '9', build: 9, commit: 'c' });
});

afterEach(() => {
  client.close();
  server.forceShutdown();
  fs.rmSync(folder, { recursive: true });
});

test('the handshake sends the token and believes only the cookie of the file', async () => {
  expect((await client.handshake(identity)).build).toBe(9);
  expect(tokens).toEqual([token]);
  replyCookie = 'c'.repeat(64);
  await expect(client.handshake(identity)).rejects.toThrow('somebody else answers');
});

test('c10: a daemon that is too new says which side to update', async () => {
  minProtocol = 2;
  await expect(client.handshake(identity)).rejects.toThrow('Update the extension');
});

test('a request has the defaults of the contract; an error comes with place and remedy', async () => {
  expect(await client.startRun({ kind: 'tune', file: '/k.py', chips: ['v5e'] })).toBe('r1');
  expect(started[0]).toMatchObject({ kind: 'tune', function: '', maxCompiles: 0 });
  const error = await client.startRun({ function: 'gone' }).catch((e: unknown) => e);
  expect(error).toBeInstanceOf(CallError);
  expect(error).toMatchObject({
    kind: 'environment',
    remedy: 'install it',
    lost: false,
    message: 'no jax (/py) install it',
  });
});

test('events after a number, in order, to the end', async () => {
  const seen: number[] = [];
  await client.watch('', 1, false, (event) => seen.push(event.sequence), new AbortController().signal);
  expect(seen).toEqual([2, 3]);
});

test('a check that is aborted is cancelled at the daemon, and nothing more is shown', async () => {
  const abort = new AbortController();
  const stages: string[] = [];
  const call = client.check(
    { file: '/k.py' },
    (event) => {
      if (event.kind?.$case === 'stage') stages.push(event.kind.stage.stage);
      abort.abort();
    },
    abort.signal,
  );
  await expect(call).rejects.toMatchObject({ kind: 'cancelled' });
  await cancelled;
  expect(stages).toEqual(['syntax']);
});

test('a daemon that is gone is told apart from an error of the call', async () => {
  await client.handshake(identity);
  server.forceShutdown();
  const error = await client.startRun({}).catch((e: unknown) => e);
  expect(error).toMatchObject({ lost: true });
});
