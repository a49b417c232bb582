// One machine for the tests of a file, and a window for each test. What failed leaves a picture and the logs.
import { afterAll, afterEach, beforeAll } from 'vitest';
import { Machine, type MachineOptions } from './machine';
import { closeBrowser, Window } from './window';

export const full = process.env.KW_FULL === '1';

export interface Bench {
  readonly machine: Machine;
  open(...files: string[]): Promise<Window>;
}

export function bench(options: MachineOptions = {}): Bench {
  let machine: Machine | undefined;
  let windows: Window[] = [];
  beforeAll(async () => {
    machine = new Machine(options);
    await machine.startServer(process.env.KW_VSCODE!);
  });
  afterEach(async (context) => {
    const failed = context.task.result?.state === 'fail';
    for (const [index, window] of windows.entries()) {
      if (failed) await window.shot(`failed ${context.task.name.slice(0, 60)} ${index}`.replace(/\W+/g, '-'));
      await window.close();
    }
    if (failed) console.log(`--- log of the extension\n${machine?.extensionLog().slice(-6000)}`);
    windows = [];
  });
  afterAll(async () => {
    await closeBrowser();
    await machine?.stop();
  });
  return {
    get machine() {
      return machine!;
    },
    async open(...files) {
      const window = await Window.open(machine!, ...files);
      windows.push(window);
      return window;
    },
  };
}
