import { randomBytes } from 'node:crypto'
import {
  appendLeaves,
  assertCosigned,
  computeFrontierRoot,
  emptyFrontier,
  encodeLogEntry,
  type Frontier,
  formatCheckpoint,
  openNote,
  parseCheckpoint,
  signNote,
  toVkey,
} from '@countersign/log'
import {
  type AppendedEntries,
  createEnclaveSettings,
  equalBytes,
  fromHex,
  hashTreeLeaf,
  type LogRequest,
  type LogResponse,
  type ReleaseRequest,
  toHex,
} from '@countersign/protocol'
import { createSigner } from '../../../../packages/log/test/logs.ts'
import { CoordinatorError } from '../../src/errors.ts'
import type { EnclaveLog, EnclaveTerms } from '../../src/sign/enclave/keyEnclave.ts'

type Current = {
  origin: string
  frontier: Frontier
  /** The index of the first entry that is kept. */
  from: number
  entries: string[]
  roots: Map<number, Uint8Array>
  isOpen: boolean
}

/** The log of a fake enclave: appends, signs checkpoints and requires cosignatures. It signs nothing else. */
export function createFakeEnclaveLog({
  own,
  witnesses,
  quorum,
  address = 'http://enclave.test',
}: {
  own: readonly string[]
  /** Ed25519 keys in hex. */
  witnesses: readonly string[]
  quorum: number
  address?: string
}) {
  const settings = createEnclaveSettings([{ kind: 'unsigned' }], [], { origins: own, witnesses, quorum })
  const keys = own.map((origin) => toVkey(createSigner(origin).key))
  const terms: EnclaveTerms = { config: {} as EnclaveTerms['config'], settings, logs: { own, keys } }
  const fake = {
    terms,
    bootId: toHex(randomBytes(16)),
    current: undefined as Current | undefined,
    left: [] as string[],
    started: [] as NonNullable<LogRequest['start']>[],
    releases: [] as ReleaseRequest[],
    /** Called before each call, with its name. May throw. */
    before: async (_call: 'call' | 'start' | 'release') => {},
    reboot() {
      fake.bootId = toHex(randomBytes(16))
      fake.current = undefined
      fake.left = []
    },
    /** Appends entries for this many leaves and responds like `sign`. */
    append(count: number, kind: 'signature' | 'dropped' = 'signature'): AppendedEntries & { leaves: string[] } {
      const current = fake.current
      if (current === undefined) throw new Error('not started')
      const from = current.frontier.size
      const leaves = Array.from({ length: count }, () => toHex(randomBytes(32)))
      for (const leaf of leaves) add(current, encodeLogEntry({ kind, keyId: '01'.repeat(16), leaf, timeMs: 1 }))
      return { ...toAppended(current, from), leaves }
    },
  }

  function add(current: Current, entry: Uint8Array) {
    current.frontier = appendLeaves(current.frontier, [hashTreeLeaf(entry)])
    current.entries.push(toHex(entry))
  }

  function toAppended(current: Current, from: number): AppendedEntries {
    const { origin, frontier } = current
    const root = computeFrontierRoot(frontier)
    current.roots.set(frontier.size, root)
    const checkpoint = signNote(formatCheckpoint({ origin, size: frontier.size, root, extensions: [] }), [
      createSigner(origin),
    ])
    const first = Math.min(Math.max(from, current.from), frontier.size)
    return { origin, from: first, entries: current.entries.slice(first - current.from), states: [], checkpoint }
  }

  function start({ origin, checkpoint, hashes }: NonNullable<LogRequest['start']>) {
    if (fake.current?.origin === origin) return
    if (!own.includes(origin) || fake.left.includes(origin)) throw refused('log_refused')
    let frontier = emptyFrontier
    if (checkpoint !== null) {
      const { size, root } = parseCheckpoint(openNote(checkpoint, [createSigner(origin).key]).text)
      frontier = { size, hashes: hashes.map((hash) => fromHex(hash)) }
      if (!equalBytes(computeFrontierRoot(frontier), root)) throw refused('log_refused')
    }
    if (fake.current !== undefined) fake.left.push(fake.current.origin)
    fake.current = { origin, frontier, from: frontier.size, entries: [], roots: new Map(), isOpen: false }
    fake.started.push({ origin, checkpoint, hashes })
    add(fake.current, encodeLogEntry({ kind: 'boot', bootId: fake.bootId, configHash: '02'.repeat(32), timeMs: 1 }))
  }

  const enclaveLog: EnclaveLog = {
    address,
    getTerms: async () => terms,
    async call(request): Promise<LogResponse> {
      await fake.before(request.start === undefined ? 'call' : 'start')
      if (request.start !== undefined) start(request.start)
      const { bootId, current } = fake
      if (current === undefined) return { bootId, log: null }
      return { bootId, log: { ...toAppended(current, request.from ?? 0), isOpen: current.isOpen } }
    },
  }

  async function release(request: ReleaseRequest) {
    await fake.before('release')
    const { current } = fake
    const { bootId, checkpoint, cosignatures = [] } = request
    if (bootId !== fake.bootId || current === undefined) throw refused('boot_unknown')
    if (checkpoint !== undefined) {
      const cosigned = assertCosigned(`${checkpoint}${cosignatures.map((line) => `${line}\n`).join('')}`, {
        log: createSigner(current.origin).key,
        policy: { witnesses, quorum },
      })
      const { size, root } = cosigned.checkpoint
      const own = current.roots.get(size)
      if (own === undefined || !equalBytes(own, root)) throw refused('checkpoint_unknown')
      current.isOpen = true
      current.entries.splice(0, Math.max(0, size - current.from))
      current.from = Math.max(current.from, size)
    }
    fake.releases.push(request)
    return { statements: (request.leaves ?? []).map(() => null), quotes: [] }
  }

  return Object.assign(fake, { enclaveLog, release })
}

export type FakeEnclaveLog = ReturnType<typeof createFakeEnclaveLog>

function refused(details: string) {
  return new CoordinatorError('log_unavailable', 'the log of the enclave cannot be used', { details })
}
