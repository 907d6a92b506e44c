/** What operators watch, in the text format of Prometheus. */
export type Metrics = {
  count(status: number): void
  toText(): string
}

export function createMetrics(readSizes: () => Iterable<readonly [origin: string, size: number]>): Metrics {
  const counts = new Map<number, number>()
  return {
    count: (status) => void counts.set(status, (counts.get(status) ?? 0) + 1),
    toText() {
      const answers = [...counts].map(
        ([status, count]) => `countersign_witness_answers_total{status="${status}"} ${count}`,
      )
      const sizes = [...readSizes()].map(
        ([origin, size]) => `countersign_witness_log_size{origin=${JSON.stringify(origin)}} ${size}`,
      )
      return [
        '# HELP countersign_witness_answers_total Answers to add-checkpoint, by status',
        '# TYPE countersign_witness_answers_total counter',
        ...answers,
        '# HELP countersign_witness_log_size Size of the newest checkpoint that was recorded, by log',
        '# TYPE countersign_witness_log_size gauge',
        ...sizes,
        '',
      ].join('\n')
    },
  }
}
