// The state of the daemon in the status bar: one word, one icon, and what stands behind it.

export type DaemonState =
  | { readonly kind: 'untrusted' }
  | { readonly kind: 'stopped' }
  | { readonly kind: 'starting' }
  | { readonly kind: 'ready'; readonly version: string; readonly pid: number }
  | { readonly kind: 'failed'; readonly message: string };

export interface Health {
  readonly text: string;
  readonly accessible: string;
  readonly level: 'normal' | 'warning' | 'error';
}

export function healthOf(state: DaemonState, activeRuns: number, checking: boolean, unsandboxed: boolean): Health {
  switch (state.kind) {
    case 'untrusted':
      return {
        text: '$(shield) Kernelwright',
        accessible: 'Kernelwright: workspace not trusted, nothing is started',
        level: 'normal',
      };
    case 'stopped':
      return { text: '$(circle-outline) Kernelwright', accessible: 'Kernelwright: not started', level: 'normal' };
    case 'starting':
      return { text: '$(loading~spin) Kernelwright', accessible: 'Kernelwright: starting', level: 'normal' };
    case 'failed':
      return { text: '$(error) Kernelwright', accessible: `Kernelwright: ${state.message}`, level: 'error' };
    case 'ready': {
      const busy = activeRuns > 0 ? `${activeRuns} ${activeRuns === 1 ? 'run' : 'runs'}` : checking ? 'checking' : '';
      const icon = busy === '' ? '$(check)' : '$(sync~spin)';
      const warning = unsandboxed ? ' $(warning) no sandbox' : '';
      return {
        text: `${icon} Kernelwright${busy === '' ? '' : `: ${busy}`}${warning}`,
        accessible: `Kernelwright: ${busy === '' ? 'ready' : busy}${unsandboxed ? ', candidates are not sandboxed' : ''}`,
        level: unsandboxed ? 'warning' : 'normal',
      };
    }
  }
}
