import type { Hex } from '@countersign/protocol'
import type { FakeChain } from '@countersign/testing'
import { ChainError } from '../../services/coordinator/src/publish/chain/chainError.ts'
import type { Chain } from '../../services/coordinator/src/publish/chain/viemChain.ts'
import type { Clock } from '../../services/coordinator/src/system.ts'
import { readSnapshot, readStoredTransactions } from '../../services/coordinator/test/proofRows.ts'
import { advanceElsewhere, toIdOf } from '../../services/coordinator/test/publish/loggedProofs.ts'
import type { TestLog } from '../../services/coordinator/test/store/logs.ts'
import type { TestStore } from '../../services/coordinator/test/store/store.ts'
import { TOO_DEAR_GWEI, type WorldCommand } from './commands.ts'
import { type Model, toKey } from './model.ts'
import { CONFIRMATIONS } from './workerProcess.ts'

const GWEI = 10n ** 9n

/** Hardhat's first account, whose private key is public. */
export const publisherKey = '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80'
const publisher: Hex = '0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266'

/** Hardhat's second account. */
const stranger: { account: Hex; privateKey: Hex } = {
  account: '0x70997970c51812dc3a010c7d01b50e0d17dc79c8',
  privateKey: '0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d',
}
/** Pays for any number of transactions. */
const FUNDS = 10n ** 24n

/** Changes the chain and the clock, which workers don't control. */
export function createWorld(parameters: {
  subject: TestStore
  model: Model
  node: FakeChain
  /** All entries are stored. */
  logs: readonly TestLog[]
  chain: Chain
  clock: Clock & { advance(ms: number): void }
}) {
  const { subject, model, node, logs, chain, clock } = parameters
  node.revertFor((event) => model.reverting.has(toKey(event)) && !model.wasPublished.has(toKey(event)))

  function rememberChain() {
    for (const event of node.events()) model.wasPublished.add(toKey(event))
    for (const { id, size } of node.checkpoints()) model.covered.set(id, Math.max(size, model.covered.get(id) ?? 0))
  }

  const publisherOf = (place: number) => (model.rotated.has(place) ? stranger.account : publisher)
  function rotate(place: number, isOn: boolean) {
    if (isOn) model.rotated.add(place)
    else model.rotated.delete(place)
    node.registerLog(toIdOf(logs[place] as TestLog), publisherOf(place))
  }
  for (const place of logs.keys()) rotate(place, false)

  /** Like a worker with another key. Skips a log that hasn't grown. */
  async function advance(place: number, pick: number) {
    const log = logs[place] as TestLog
    const head = node.checkpoints().findLast(({ id }) => id === toIdOf(log))?.size ?? 0
    const growth = log.entries.length - head
    if (growth <= 0) return
    const size = head + 1 + (pick % growth)
    model.foreign.add(await advanceElsewhere(node, { log, size, publisher: publisherOf(place), stranger }))
  }

  function setFunds(isEmpty: boolean) {
    model.isEmpty = isEmpty
    node.setBalance(publisher, isEmpty ? 1n : FUNDS)
  }

  /** Ends everything that keeps transactions from being mined. */
  function heal() {
    node.holdMempool(false)
    forgetNothing()
    setFee(1)
    setFunds(false)
    for (const place of model.rotated) rotate(place, false)
    // The fee depends on the newest block.
    node.mine(1)
  }

  const forgotten: (() => void)[] = []
  function forgetNothing() {
    for (const remember of forgotten.splice(0)) remember()
  }

  function setFee(gwei: number) {
    if (model.feeGwei === TOO_DEAR_GWEI) model.dearBlock = node.head.number
    model.feeGwei = gwei
    node.setBaseFee(BigInt(gwei) * GWEI)
  }

  async function act(command: WorldCommand): Promise<void> {
    switch (command.do) {
      case 'mine':
        return node.mine(command.blocks)
      case 'reorg': {
        rememberChain()
        const depth = Math.min(command.depth, node.head.number)
        if (depth >= CONFIRMATIONS) model.hadDeepReorg = true
        return node.reorg(depth, { keep: command.keep })
      }
      case 'drop': {
        const waiting = node.mempool()
        const hash = waiting[command.pick % Math.max(1, waiting.length)]?.hash
        if (hash !== undefined) node.dropTransaction(hash)
        return
      }
      case 'send again': {
        const raws = await readStoredTransactions(subject)
        const raw = raws[command.pick % Math.max(1, raws.length)]
        if (raw !== undefined) await chain.send(raw).catch(orChainError)
        return
      }
      case 'hold':
        return node.holdMempool(command.isHeld)
      case 'set fee':
        return setFee(command.gwei)
      case 'wait':
        return clock.advance(command.ms)
      case 'revert': {
        rememberChain()
        const proof = model.seen.proofs[command.pick % Math.max(1, model.seen.proofs.length)]
        if (proof === undefined) return
        if (!command.isOn) return void model.reverting.delete(toKey(proof))
        model.mayRevert.add(proof.slug)
        return void model.reverting.add(toKey(proof))
      }
      case 'use nonce': {
        const nonce = node.transactions().filter(({ from }) => from === publisher).length
        const { publications } = await readSnapshot(subject)
        // An event can't come back if its nonce was used after the proof was complete.
        if (publications.some((item) => item.nonce === nonce && item.status === 'confirmed')) return
        await node.sendFromElsewhere({ privateKey: publisherKey })
        return
      }
      case 'forget': {
        if (!command.isOn) return forgetNothing()
        const mined = node.transactions()
        const hash = mined[mined.length - 1 - (command.pick % Math.max(1, mined.length))]?.hash
        if (hash !== undefined) forgotten.push(node.forget(hash))
        return
      }
      case 'empty account':
        return setFunds(command.isEmpty)
      case 'rotate':
        return rotate(command.log, command.isOn)
      case 'advance':
        return advance(command.log, command.pick)
    }
  }

  return { act, heal }
}

function orChainError(error: unknown): void {
  if (!(error instanceof ChainError)) throw error
}
