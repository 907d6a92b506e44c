import { type Environment, type LogFields, mains, type Service, startService } from '@countersign/testing/launcher'

/** A process that can be killed, frozen and restarted at the same address. */
export type Member = {
  name: string
  kind: 'coordinator' | 'worker' | 'enclave' | 'witness'
  /** Undefined while it isn't running. */
  pid(): number | undefined
  /** Resolves when it serves, with the fields of its "started" log line. */
  start(): Promise<LogFields>
  /** Resolves when it has exited. */
  kill(signal: 'SIGKILL' | 'SIGTERM'): Promise<void>
  freeze(): void
  wake(): void
  /** How often it exited by itself after it had started to serve. Failed starts don't count: they are retried. */
  deaths(): number
}

export type CreateMemberParameters = Pick<Member, 'name' | 'kind'> & {
  env: Environment
  onLine(name: string, line: string): void
}

export function createMember({ name, kind, env, onLine }: CreateMemberParameters): Member {
  let service: Service | undefined
  let deaths = 0
  /** Processes that `kill` ended. */
  const stopped = new WeakSet<Service>()
  return {
    name,
    kind,
    pid: () => (service === undefined || service.hasEnded() ? undefined : service.pid),
    async start() {
      service = startService({ name: kind, main: mains[kind], env, onLine: (line) => onLine(name, line) })
      const started = service
      const fields = await started.started
      void started.ended.then(() => {
        if (!stopped.has(started)) deaths += 1
      })
      return fields
    },
    async kill(signal) {
      if (service === undefined) return
      stopped.add(service)
      await service.kill(signal)
    },
    freeze: () => service?.freeze(),
    wake: () => service?.wake(),
    deaths: () => deaths,
  }
}

/** A fault for each process that crashed. Only the trial itself may end processes. */
export const listDeaths = (members: readonly Pick<Member, 'name' | 'deaths'>[]): string[] =>
  members.flatMap(({ name, deaths }) => (deaths() > 0 ? [`${name} crashed ${deaths()} times`] : []))
