import { type Service, startService } from '../../dev/service.ts'

/** One process of the cluster, which may be killed, frozen and started again at the same address. */
export type Member = {
  name: string
  kind: 'coordinator' | 'worker' | 'enclave'
  /** Undefined while it does not run. */
  pid(): number | undefined
  /** Resolves when it serves. */
  start(): Promise<void>
  /** Resolves when it has ended. */
  kill(signal: 'SIGKILL' | 'SIGTERM'): Promise<void>
  freeze(): void
  wake(): void
  /** How often it has ended, once it served, without being told to. One that cannot start ends by itself, to be started again. */
  deaths(): number
}

export type CreateMemberParameters = Pick<Member, 'name' | 'kind'> & {
  main: string
  env: Record<string, string>
  onLine(name: string, line: string): void
}

export function createMember({ name, kind, main, env, onLine }: CreateMemberParameters): Member {
  let service: Service | undefined
  let deaths = 0
  const told = new WeakSet<Service>()
  return {
    name,
    kind,
    pid: () => (service === undefined || service.hasEnded() ? undefined : service.pid),
    async start() {
      service = startService({ name: kind, main, env, onLine: (line) => onLine(name, line) })
      const started = service
      await started.ready
      void started.ended.then(() => {
        if (!told.has(started)) deaths += 1
      })
    },
    async kill(signal) {
      if (service !== undefined) told.add(service)
      service?.signal(signal)
      await service?.ended
    },
    freeze: () => service?.signal('SIGSTOP'),
    wake: () => service?.signal('SIGCONT'),
    deaths: () => deaths,
  }
}
