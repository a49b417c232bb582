// Errors that reach the user. Apart from what raises them, so that catching one loads nothing.

/** An error that the user can do something about. */
export class UserError extends Error {
  constructor(
    message: string,
    readonly remedy = '',
    readonly kind = 'environment',
  ) {
    super(remedy === '' ? message : `${message} ${remedy}`);
  }
}

/** An error of a call: what the daemon says, or that it is gone. */
export class CallError extends UserError {
  constructor(
    message: string,
    remedy: string,
    kind: string,
    readonly lost: boolean,
  ) {
    super(message, remedy, kind);
  }
}
