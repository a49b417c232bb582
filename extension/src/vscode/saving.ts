// A run and a profile read the file from disk: unsaved changes are saved first, after a question unless the settings say so.
import * as path from 'node:path';
import * as vscode from 'vscode';
import { UserError } from '../node/errors';
import { setting } from './settings';

export async function saveFirst(document: vscode.TextDocument, purpose: string): Promise<void> {
  if (!document.isDirty) return;
  const name = path.basename(document.uri.fsPath);
  if (setting<string>('optimize.saveBefore', document.uri) === 'ask') {
    const detail = `To ${purpose}, the file is read from disk.`;
    const options = { modal: true, detail };
    const choice = await vscode.window.showWarningMessage(`${name} has unsaved changes.`, options, 'Save and Go On');
    if (choice === undefined) throw new vscode.CancellationError();
  }
  if (!(await document.save())) throw new UserError(`${name} could not be saved.`, 'Save it elsewhere and try again.');
}
