import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import {
  createConsistencyProof,
  createLeafReader,
  formatAddCheckpoint,
  formatCheckpoint,
  hashOrigin,
  openNote,
  parseCheckpoint,
  parseNote,
  signNote,
  toVkey,
} from '@countersign/log'
import { hashTree, hashTreeLeaf, toHex } from '@countersign/protocol'
import { createRandom } from '@countersign/testing'
import { type Service, startService, toPath } from '@countersign/testing/launcher'
import { log, origin } from '../../packages/log/test/logs.ts'
import { createKeyFile, readSigners } from '../../services/witness/src/signers.ts'
import { createWitnessFolder } from '../../services/witness/src/witnessFolder.ts'
import { count, type Outcome, seed, type Trial, type TrialDeps, type Values } from '../trial.ts'

type KillsReport = {
  kills: number
  /** Checkpoints that a cosignature came back for, and how often. */
  cosigned: number
  /** Kills after which the witness had recorded the round's checkpoint, and after which it had not. */
  recorded: number
  unrecorded: number
}

/** Every third kill comes right after the first cosignature. Of the others some come before the witness listens, the rest while it is asked. */
const ANSWERED_EACH = 3
const EARLY_SHARE = 0.1
const EARLY_MS = 200
const ASKED_MS = 150

type Branch = { leaves: readonly Uint8Array[]; checkpoint: string; request: string; root: string }

const options = {
  kills: count(1_000, 'how often'),
  seed: seed('of the random moments'),
}
type Options = Values<typeof options>

export const witnessKills: Trial = {
  summary: `Kills a witness at random moments while two histories of one log are offered to it; it must never cosign both, nor forget what it cosigned.`,
  options,
  example: '--kills 50',
  run: runKills,
}

/**
 * Kills a witness again and again while two histories that part from what it cosigned last are offered to it, both by the log's own key. After
 * each start it is asked where it stands, and the next two part from there.
 */
export async function runKills({ scope, say }: TrialDeps, { kills, seed }: Options): Promise<Outcome> {
  const folder = await scope.createFolder()
  const random = createRandom(seed)
  const keyFile = createKeyFile('witness.example/w1', (length) => new Uint8Array(length).map(() => random() * 256))
  const key = readSigners(keyFile)[0]?.key as ReturnType<typeof readSigners>[number]['key']
  await createWitnessFolder(join(folder, 'witness'), keyFile)
  await writeFile(join(folder, 'logs'), `logs/v0\nvkey ${toVkey(log.key)}\n`)
  const env = { PORT: '0', WITNESS_DIR: join(folder, 'witness'), WITNESS_LOGS_FILE: join(folder, 'logs') }
  const start = () => startService({ name: 'witness', main: toPath('services/witness/src/main.ts'), env })

  /** By size: the roots that came back cosigned. */
  const roots = new Map<number, Set<string>>()
  const report: KillsReport = { kills: 0, cosigned: 0, recorded: 0, unrecorded: 0 }
  const faults: string[] = []
  let leaves: readonly Uint8Array[] = []
  let branches: Branch[] = []

  /** Offers one branch until the witness is gone, and keeps what it cosigned. */
  async function offer(address: string, { checkpoint, request, leaves: own, root }: Branch, onCosigned: () => void) {
    for (;;) {
      const response = await fetch(`${address}/add-checkpoint`, { method: 'POST', body: request }).catch(
        () => undefined,
      )
      const lines = await response?.text().catch(() => undefined)
      if (response === undefined || lines === undefined) return
      if (response.status !== 200) continue
      openNote(`${checkpoint}${lines}`, [key])
      report.cosigned += 1
      roots.set(own.length, (roots.get(own.length) ?? new Set()).add(root))
      onCosigned()
    }
  }

  /** Asks a witness that has just started what it has, and goes on from there. */
  async function learn(address: string, round: number) {
    const stored = await readStored(address)
    const at = [leaves, ...branches.map((branch) => branch.leaves)].find((one) => toRoot(one) === stored)
    if (at === undefined) throw new Error('the witness has a checkpoint that nobody offered')
    for (const cosignedRoot of roots.get(leaves.length + 1) ?? []) {
      if (cosignedRoot !== stored) faults.push(`size ${leaves.length + 1} was cosigned and is lost in round ${round}`)
    }
    if (round > 0) report[at === leaves ? 'unrecorded' : 'recorded'] += 1
    leaves = at
    branches = ['a', 'b'].map((name) => createBranch(leaves, `${round}${name}`))
  }

  async function killOnce(service: Service, round: number) {
    const isAnswered = round % ANSWERED_EACH === ANSWERED_EACH - 1
    if (!isAnswered && random() < EARLY_SHARE) {
      await setTimeout(random() * EARLY_MS)
      if (service.hasEnded()) await service.started
      await service.kill('SIGKILL')
      return
    }
    const { address } = await service.started
    await learn(String(address), round)
    const { promise: cosigned, resolve: onCosigned } = Promise.withResolvers<void>()
    const offers = branches.map((branch) => offer(String(address), branch, onCosigned))
    await (isAnswered ? cosigned : setTimeout(random() * ASKED_MS))
    await service.kill('SIGKILL')
    await Promise.all(offers)
  }

  for (let round = 0; round < kills; round++) {
    await killOnce(start(), round)
    report.kills += 1
    if (report.kills % 100 === 0) say(`${report.kills} kills, ${leaves.length} checkpoints recorded`)
  }
  const last = start()
  await learn(String((await last.started).address), kills)
  await last.stop()
  for (const [size, set] of roots) {
    const [root] = set
    if (set.size > 1 || root !== toRoot(leaves.slice(0, size)))
      faults.push(`two histories of size ${size} were cosigned`)
  }
  return { faults, figures: report }
}

/** The root of the newest checkpoint; that of nothing, where there is none. */
async function readStored(address: string): Promise<string> {
  const response = await fetch(`${address}/${hashOrigin(origin)}/checkpoint`)
  const text = await response.text()
  return response.status === 404 ? '' : toHex(parseCheckpoint(parseNote(text).text).root)
}

function toRoot(leaves: readonly Uint8Array[]): string {
  return leaves.length === 0 ? '' : toHex(hashTree(leaves))
}

/** One leaf more than the history, as the log would ask for it. */
function createBranch(history: readonly Uint8Array[], name: string): Branch {
  const leaves = [...history, hashTreeLeaf(new TextEncoder().encode(name))]
  const [oldSize, size] = [history.length, leaves.length]
  const text = formatCheckpoint({ origin, size, root: hashTree(leaves), extensions: [] })
  const checkpoint = signNote(text, [log])
  const proof = createConsistencyProof(createLeafReader(leaves), { oldSize, size })
  return { leaves, checkpoint, request: formatAddCheckpoint({ oldSize, proof, checkpoint }), root: toRoot(leaves) }
}
