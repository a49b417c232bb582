import { afterAll, beforeAll, expect, test } from "vitest";
import { Machine, until } from "./machine";
import { closeBrowser, Window } from "./window";

let machine: Machine;
let window: Window;

beforeAll(async () => {
  machine = new Machine();
  machine.example("broken.py");
  await machine.startServer(process.env.KW_VSCODE!);
  window = await Window.open(machine, "broken.py");
});

afterAll(async () => {
  await window?.close();
  await closeBrowser();
  await machine?.stop();
});

test("an opened file gets a squiggle, and its quick fix compiles", async () => {
  try {
    await window.squiggle("error").first().waitFor({ timeout: 90_000 });
  } catch (e) {
    await window.shot("fail");
    console.log(machine.extensionLog(), machine.serverLog().slice(-3000));
    throw e;
  }
  await window.shot("squiggle");
  console.log(machine.extensionLog());
  expect(await until("x", 1, () => 1)).toBe(1);
});
