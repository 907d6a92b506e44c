/** Metrics in the text format of Prometheus. */
export type Metrics = {
  count(status: number): void
  countFork(): void
  toText(): string
}

export type MetricsDeps = {
  readSizes(): Iterable<readonly [origin: string, size: number]>
  /** The file system with the cosigned checkpoints. */
  readDisk(): { freeBytes: number; sizeBytes: number }
  /** Milliseconds since 1970. */
  now(): number
  startedAt: number
  version: string
}

type Sample = readonly [labels: Readonly<Record<string, string | number>>, value: number]

export function createMetrics({ readSizes, readDisk, now, startedAt, version }: MetricsDeps): Metrics {
  // Starts at zero, because Prometheus sees no increase when a counter first appears.
  const counts = new Map([200, 409, 422, 500].map((status) => [status, 0]))
  let forks = 0
  return {
    countFork: () => void forks++,
    count: (status) => void counts.set(status, (counts.get(status) ?? 0) + 1),
    toText() {
      const { freeBytes, sizeBytes } = readDisk()
      return [
        format('countersign_witness_answers_total', 'counter', 'Answers to add-checkpoint, by status', [
          ...[...counts].map(([status, count]): Sample => [{ status }, count]),
        ]),
        format(
          'countersign_witness_forks_total',
          'counter',
          'Checkpoints of one size with two roots, signed by a log',
          [[{}, forks]],
        ),
        format('countersign_witness_log_size', 'gauge', 'Size of the newest checkpoint that was recorded, by log', [
          ...[...readSizes()].map(([origin, size]): Sample => [{ origin }, size]),
        ]),
        format('countersign_info', 'gauge', 'Always 1; labels give the program, its version and its hardware mode', [
          [{ program: 'witness', version, mode: 'none' }, 1],
        ]),
        format(
          'countersign_clock_seconds',
          'gauge',
          'Clock of this process in seconds since 1970, to compare with the scraper',
          [[{}, now() / 1000]],
        ),
        format('countersign_disk_free_bytes', 'gauge', 'Free space on the file system of the data folder', [
          [{}, freeBytes],
        ]),
        format('countersign_disk_size_bytes', 'gauge', 'Size of the file system of the data folder', [[{}, sizeBytes]]),
        format('process_start_time_seconds', 'gauge', 'Start time of the process since unix epoch in seconds.', [
          [{}, startedAt / 1000],
        ]),
      ].join('')
    },
  }
}

function format(name: string, type: 'counter' | 'gauge', help: string, samples: readonly Sample[]): string {
  const lines = samples.map(([labels, value]) => {
    const pairs = Object.entries(labels).map(([label, text]) => `${label}=${JSON.stringify(String(text))}`)
    return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}\n`
  })
  return [`# HELP ${name} ${help}\n`, `# TYPE ${name} ${type}\n`, ...lines].join('')
}
