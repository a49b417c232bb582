// From plain values to the editor's classes.
import * as vscode from 'vscode';
import type { Severity } from '../common/diagnostics';
import type { Range } from '../common/offsets';

/** `shift` lines are taken off: those of the cells before. */
export function toRange(range: Range, shift = 0): vscode.Range {
  const { start, end } = range;
  return new vscode.Range(start.line - shift, start.character, end.line - shift, end.character);
}

export function toSeverity(severity: Severity): vscode.DiagnosticSeverity {
  switch (severity) {
    case 'error':
      return vscode.DiagnosticSeverity.Error;
    case 'warning':
      return vscode.DiagnosticSeverity.Warning;
    case 'information':
      return vscode.DiagnosticSeverity.Information;
    case 'hint':
      return vscode.DiagnosticSeverity.Hint;
  }
}
