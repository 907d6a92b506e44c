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
  /** Number of cosignatures received. */
  cosigned: number
  /** Kills after which the witness had recorded the round's checkpoint, and after which it had not. */
  recorded: number
  unrecorded: number
}

/**
 * Every third kill follows the first cosignature. Of the others, some come before the witness listens and the rest while it serves requests.
 */
const ANSWERED_EACH = 3
const EARLY_SHARE = 0.1
const EARLY_MS = 200
const ASKED_MS = 150

type Branch = { leaves: readonly Uint8Array[]; checkpoint: string; request: string; root: string }

const options = {
  kills: count(1_000, 'number of kills'),
  seed: seed('chooses the random times'),
}
type Options = Values<typeof options>

export const witnessKills: Trial = {
  summary: `Kills a witness at random while it is offered two histories of one log. It must never cosign both, or forget a cosigned checkpoint.`,
  options,
  example: '--kills 50',
  run: runKills,
}

/**
 * Repeatedly kills a witness while it is offered two histories, both signed by the log's key, that fork from its last cosigned checkpoint.
 * After each restart, its recorded checkpoint is where the next two histories fork.
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

  /** Roots of cosigned checkpoints by tree size. */
  const roots = new Map<number, Set<string>>()
  const report: KillsReport = { kills: 0, cosigned: 0, recorded: 0, unrecorded: 0 }
  const faults: string[] = []
  let leaves: readonly Uint8Array[] = []
  let branches: Branch[] = []

  /** Offers one branch until the witness is down, and records cosigned roots. */
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

  /** Reads the checkpoint of a restarted witness and forks the next branches from it. */
  async function learn(address: string, round: number) {
    const stored = await readStored(address)
    const at = [leaves, ...branches.map((branch) => branch.leaves)].find((one) => toRoot(one) === stored)
    if (at === undefined) throw new Error('the witness has a checkpoint that was never offered')
    for (const cosignedRoot of roots.get(leaves.length + 1) ?? []) {
      if (cosignedRoot !== stored) faults.push(`size ${leaves.length + 1} was cosigned but lost in round ${round}`)
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

/** Root of the newest checkpoint; empty if there is none. */
async function readStored(address: string): Promise<string> {
  const response = await fetch(`${address}/${hashOrigin(origin)}/checkpoint`)
  const text = await response.text()
  return response.status === 404 ? '' : toHex(parseCheckpoint(parseNote(text).text).root)
}

function toRoot(leaves: readonly Uint8Array[]): string {
  return leaves.length === 0 ? '' : toHex(hashTree(leaves))
}

/** Adds one leaf to the history, as a request for cosigning. */
function createBranch(history: readonly Uint8Array[], name: string): Branch {
  const leaves = [...history, hashTreeLeaf(new TextEncoder().encode(name))]
  const [oldSize, size] = [history.length, leaves.length]
  const text = formatCheckpoint({ origin, size, root: hashTree(leaves), extensions: [] })
  const checkpoint = signNote(text, [log])
  const proof = createConsistencyProof(createLeafReader(leaves), { oldSize, size })
  return { leaves, checkpoint, request: formatAddCheckpoint({ oldSize, proof, checkpoint }), root: toRoot(leaves) }
}
