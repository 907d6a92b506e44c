import type { ReleaseRequest, ReleaseResponse } from '@countersign/protocol'
import type { Log } from '@countersign/service'
import type { KeyEnclave } from '../enclave/keyEnclave.ts'
import { createGatherer, type Progress } from '../store/gather.ts'
import type { Schedule } from '../system.ts'
import { toReason } from '../toReason.ts'

/** What this coordinator tells the boots that signed for it. */
export type Releases = {
  /**
   * Asks for statements of about so many bytes, together with others that wait for the same note; acknowledgements that wait for this boot
   * go along.
   */
  release(request: ReleaseRequest, bytes: number): Promise<ReleaseResponse>
  /** No caller waits for these any more. Sent in the background, once: the enclave erases the others after a while. */
  drop(bootId: string, leaves: readonly string[]): void
  /** The signing is stored. Goes along with the next release, or by itself within a second. */
  acknowledge(bootId: string, leaf: string): void
  /** Tells what is still to be told. */
  stop(): Promise<void>
}

const ACKNOWLEDGE_MS = 500
/** After that the enclave has reported that it heard nothing. */
const FORGET_MS = 60_000
const MAX_ACKNOWLEDGED = 1_024
/** Requests in one call. */
const MAX_TOGETHER = 512
/** Statements in one answer, far below what is read of one: more only for a single request, which one call to sign bounds. */
const MAX_TOGETHER_BYTES = 2_000_000

/** A call that waits for statements. */
type Call = { request: ReleaseRequest; bytes: number }

/** Leaves to acknowledge, and since when. */
type Acknowledgements = { leaves: Map<string, number>; cancel: (() => void) | undefined }

export function createReleases(deps: {
  enclave: Pick<KeyEnclave, 'release'>
  schedule: Schedule
  log: Pick<Log, 'warn'>
}): Releases {
  const { enclave, schedule, log } = deps
  const boots = new Map<string, Acknowledgements>()
  const underWay = new Set<Promise<void>>()
  let isStopped = false

  const gatherer = createGatherer<Call, ReleaseResponse>({
    limit: MAX_TOGETHER,
    weight: { of: ({ bytes }) => bytes, limit: MAX_TOGETHER_BYTES },
    slots: 1,
    async run(asked, { onSent, answer }) {
      // Who comes next does not wait for this answer.
      onSent()
      const groups = Map.groupBy(asked, ({ request: { leaves: _, ...note } }) => JSON.stringify(note))
      await Promise.all([...groups.values()].map((group) => releaseTogether(group, answer)))
    },
  })

  async function releaseTogether(asked: readonly Call[], answer: Progress<Call, ReleaseResponse>['answer']) {
    const leaves = asked.flatMap(({ request }) => request.leaves ?? [])
    const [released] = await Promise.allSettled([send({ ...(asked[0] as Call).request, leaves })])
    let start = 0
    for (const call of asked) {
      const end = start + (call.request.leaves ?? []).length
      if (released.status === 'rejected') answer(call, released)
      else answer(call, { status: 'fulfilled', value: { statements: released.value.statements.slice(start, end) } })
      start = end
    }
  }

  async function send(request: ReleaseRequest): Promise<ReleaseResponse> {
    const { bootId } = request
    const taken = take(bootId)
    try {
      return await enclave.release({
        ...request,
        ...(taken.length > 0 && { acknowledge: taken.map(([leaf]) => leaf) }),
      })
    } catch (error) {
      putBack(bootId, taken)
      throw error
    }
  }

  function take(bootId: string): [string, number][] {
    const waiting = boots.get(bootId)
    if (waiting === undefined) return []
    const taken = [...waiting.leaves].slice(0, MAX_ACKNOWLEDGED)
    for (const [leaf] of taken) waiting.leaves.delete(leaf)
    if (waiting.leaves.size === 0) {
      waiting.cancel?.()
      boots.delete(bootId)
    }
    return taken
  }

  function putBack(bootId: string, taken: readonly (readonly [string, number])[]) {
    for (const [leaf, since] of taken) if (performance.now() - since < FORGET_MS) add(bootId, leaf, since)
  }

  function add(bootId: string, leaf: string, since: number) {
    const waiting = boots.get(bootId) ?? { leaves: new Map(), cancel: undefined }
    boots.set(bootId, waiting)
    waiting.leaves.set(leaf, since)
    if (isStopped) return
    waiting.cancel ??= schedule(() => {
      waiting.cancel = undefined
      tellAll(bootId)
    }, ACKNOWLEDGE_MS)
  }

  function tell(request: ReleaseRequest) {
    const told = send(request).then(
      () => {},
      (error: unknown) => log.warn({ msg: 'Could not tell an enclave', bootId: request.bootId, ...toReason(error) }),
    )
    underWay.add(told)
    void told.then(() => underWay.delete(told))
  }

  /** Each call takes what it tells. */
  function tellAll(bootId: string) {
    while (boots.has(bootId)) tell({ bootId })
  }

  return {
    release: (request, bytes) => gatherer.add({ request, bytes }),
    drop(bootId, leaves) {
      if (leaves.length > 0) tell({ bootId, drop: leaves })
    },
    acknowledge: (bootId, leaf) => add(bootId, leaf, performance.now()),
    async stop() {
      isStopped = true
      for (const bootId of [...boots.keys()]) tellAll(bootId)
      while (underWay.size > 0) await Promise.all(underWay)
    },
  }
}
