// The daemon over its private socket: token on every call, cookie in the handshake, errors with their remedy, promises
// and abort signals in place of callbacks. The only file that knows the wire.
import * as grpc from '@grpc/grpc-js';
import { CheckRequest, type CheckEvent } from '../generated/kernelwright/v1/check';
import { ProfileRequest, type ProfileReply } from '../generated/kernelwright/v1/profile';
import type { Event } from '../generated/kernelwright/v1/run';
import {
  DoctorRequest,
  ErrorDetail,
  KernelwrightClient,
  StartRunRequest,
  type DoctorReply,
  type HandshakeReply,
  type ListRunsReply,
  type RunRecord,
  type StatusReply,
} from '../generated/kernelwright/v1/session';
import type { BuildIdentity } from './binary';
import type { Discovery } from './discovery';
import { CallError } from './errors';

const kMaxMessageBytes = 64 << 20;

type Unary<Request, Reply> = (
  request: Request,
  metadata: grpc.Metadata,
  options: grpc.CallOptions,
  callback: (error: grpc.ServiceError | null, reply: Reply) => void,
) => grpc.ClientUnaryCall;

export class DaemonClient {
  private readonly stub: KernelwrightClient;
  private readonly metadata = new grpc.Metadata();

  constructor(readonly discovery: Discovery) {
    this.stub = new KernelwrightClient(`unix:${discovery.socket}`, grpc.credentials.createInsecure(), {
      'grpc.enable_http_proxy': 0,
      'grpc.service_config_disable_resolution': 1,
      'grpc.max_receive_message_length': kMaxMessageBytes,
      'grpc.max_send_message_length': kMaxMessageBytes,
      // A daemon that was restarted is found through its new file, not by trying the old socket again.
      'grpc.enable_retries': 0,
    });
    this.metadata.set('kernelwright-token', discovery.token);
  }

  /** Proves both sides to each other; throws when somebody else answers on the socket. */
  async handshake(identity: BuildIdentity): Promise<HandshakeReply> {
    const reply = await this.unary<Parameters<KernelwrightClient['handshake']>[0], HandshakeReply>(
      'handshake',
      {
        clientVersion: identity.version,
        clientBuild: identity.build,
        clientCommit: identity.commit,
        protocolVersion: identity.protocolMax,
        minProtocolVersion: identity.protocolMin,
      },
      undefined,
      10_000,
    );
    if (reply.cookie !== this.discovery.cookie) {
      throw new CallError("somebody else answers on the daemon's socket", 'Restart the daemon.', 'environment', true);
    }
    if (reply.minProtocolVersion > identity.protocolMax) {
      throw new CallError(
        `the daemon ${reply.version} (build ${reply.build}) is newer than this extension`,
        'Update the extension.',
        'environment',
        false,
      );
    }
    return reply;
  }

  startRun(request: Partial<StartRunRequest>): Promise<string> {
    const whole = StartRunRequest.fromPartial(request);
    return this.unary<StartRunRequest, { run: string }>('startRun', whole).then((reply) => reply.run);
  }
  cancelRun(run: string): Promise<boolean> {
    return this.unary<{ run: string }, { wasRunning: boolean }>('cancelRun', { run }).then((reply) => reply.wasRunning);
  }
  resumeRun(run: string): Promise<string> {
    return this.unary<{ run: string }, { run: string }>('resumeRun', { run }).then((reply) => reply.run);
  }
  listRuns(limit: number): Promise<RunRecord[]> {
    return this.unary<{ limit: number }, ListRunsReply>('listRuns', { limit }).then((reply) => reply.runs);
  }
  getRun(run: string): Promise<RunRecord> {
    return this.unary<{ run: string }, RunRecord>('getRun', { run });
  }
  status(): Promise<StatusReply> {
    return this.unary<object, StatusReply>('getStatus', {}, undefined, 10_000);
  }
  doctor(request: Partial<DoctorRequest>, signal?: AbortSignal): Promise<DoctorReply> {
    return this.unary('doctor', DoctorRequest.fromPartial(request), signal);
  }
  profile(request: Partial<ProfileRequest>, signal?: AbortSignal): Promise<ProfileReply> {
    return this.unary('profile', ProfileRequest.fromPartial(request), signal);
  }

  /** Calls `onEvent` for each stage and for the result; ends with the check. */
  check(request: Partial<CheckRequest>, onEvent: (event: CheckEvent) => void, signal: AbortSignal): Promise<void> {
    return this.stream(this.stub.check(CheckRequest.fromPartial(request), this.metadata), onEvent, signal);
  }

  /** Events of one run, or of all (""), after a number. */
  watch(
    run: string,
    since: number,
    follow: boolean,
    onEvent: (event: Event) => void,
    signal: AbortSignal,
  ): Promise<void> {
    return this.stream(this.stub.watchEvents({ run, sinceSequence: since, follow }, this.metadata), onEvent, signal);
  }

  close(): void {
    this.stub.close();
  }

  private unary<Request, Reply>(
    name: string,
    request: Request,
    signal?: AbortSignal,
    timeoutMs?: number,
  ): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const method = (this.stub as unknown as Record<string, Unary<Request, Reply>>)[name]!.bind(this.stub);
      const options: grpc.CallOptions = timeoutMs === undefined ? {} : { deadline: Date.now() + timeoutMs };
      const call = method(request, this.metadata, options, (error, reply) => {
        signal?.removeEventListener('abort', cancel);
        if (error) reject(toCallError(error));
        else resolve(reply);
      });
      const cancel = () => call.cancel();
      if (signal?.aborted) cancel();
      else signal?.addEventListener('abort', cancel);
    });
  }

  private stream<Item>(
    call: grpc.ClientReadableStream<Item>,
    onItem: (item: Item) => void,
    signal: AbortSignal,
  ): Promise<void> {
    return new Promise((resolve, reject) => {
      const cancel = () => call.cancel();
      const done = (error?: grpc.ServiceError) => {
        signal.removeEventListener('abort', cancel);
        if (error) reject(toCallError(error));
        else resolve();
      };
      call.on('data', (item: Item) => {
        if (!signal.aborted) onItem(item);
      });
      call.on('error', done);
      call.on('end', () => done());
      if (signal.aborted) cancel();
      else signal.addEventListener('abort', cancel);
    });
  }
}

function toCallError(error: grpc.ServiceError): CallError {
  const [details] = error.metadata?.get('grpc-status-details-bin') ?? [];
  if (Buffer.isBuffer(details)) {
    try {
      const detail = ErrorDetail.decode(details);
      if (detail.kind !== '') {
        const where = detail.where === '' ? '' : ` (${detail.where})`;
        return new CallError(`${detail.message}${where}`, detail.remedy, detail.kind, false);
      }
    } catch {
      // Details that cannot be read leave the status itself.
    }
  }
  switch (error.code) {
    case grpc.status.CANCELLED:
      return new CallError('cancelled', '', 'cancelled', false);
    case grpc.status.UNAVAILABLE:
    case grpc.status.UNAUTHENTICATED:
      return new CallError('the connection to the daemon was lost', 'What was stored is kept.', 'internal', true);
    case grpc.status.UNIMPLEMENTED:
      return new CallError(
        'the daemon is of another version and does not know this call',
        'Restart it when it has nothing to do.',
        'environment',
        false,
      );
    case grpc.status.DEADLINE_EXCEEDED:
      return new CallError('the daemon does not answer', 'Restart it, or show the log.', 'limit', true);
    default:
      return new CallError(error.details || error.message, '', 'internal', false);
  }
}
