// Hash of a text as UTF-8, as edits name what they were made from.
import { createHash } from 'node:crypto';

export function sha256(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex');
}
