export type Shutdown = { add(stop: () => unknown): void; run(): Promise<void> }
export function createShutdown(): Shutdown {
  const stops: (() => unknown)[] = []
  return {
    add: (stop) => void stops.push(stop),
    async run() {
      for (const stop of stops.reverse()) await stop()
    },
  }
}
