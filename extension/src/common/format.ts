// Numbers as people read them. A time says that it is estimated; what is not known is never shown as 0.

export function formatMs(ms: number): string {
  if (ms < 0.001) return `${digits(ms * 1e6)} ns`;
  if (ms < 1) return `${digits(ms * 1e3)} µs`;
  return ms < 1000 ? `${digits(ms)} ms` : `${digits(ms / 1000)} s`;
}

export function formatShare(share: number): string {
  return `${digits(share * 100, 2)} %`;
}

export function formatCount(count: number): string {
  if (count < 1e3) return digits(count);
  if (count < 1e6) return `${digits(count / 1e3)} k`;
  return count < 1e9 ? `${digits(count / 1e6)} M` : `${digits(count / 1e9)} G`;
}

export function formatBytes(bytes: number): string {
  if (bytes < 1024) return `${digits(bytes)} B`;
  if (bytes < 2 ** 20) return `${digits(bytes / 1024)} KiB`;
  return bytes < 2 ** 30 ? `${digits(bytes / 2 ** 20)} MiB` : `${digits(bytes / 2 ** 30)} GiB`;
}

export function formatSpeedup(factor: number): string {
  return `${factor.toFixed(2)}x`;
}

export function formatDuration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min ${seconds % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

function digits(value: number, significant = 3): string {
  if (!Number.isFinite(value)) return '–';
  if (value === 0) return '0';
  return value >= 10 ** significant ? value.toFixed(0) : Number(value.toPrecision(significant)).toString();
}
