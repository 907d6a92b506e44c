import type { Hex } from '@countersign/protocol'
import type { FakeChain } from '@countersign/testing'
import { ChainError } from '../../services/coordinator/src/publish/chain/chainError.ts'
import type { Chain } from '../../services/coordinator/src/publish/chain/viemChain.ts'
import type { Clock } from '../../services/coordinator/src/system.ts'
import { readSnapshot, readStoredTransactions } from '../../services/coordinator/test/proofRows.ts'
import type { TestStore } from '../../services/coordinator/test/store/store.ts'
import { TOO_DEAR_GWEI, type WorldCommand } from './commands.ts'
import { type Model, toKey } from './model.ts'
import { CONFIRMATIONS } from './workerProcess.ts'

const GWEI = 10n ** 9n

/** Hardhat's first account, whose private key is public. */
export const publisherKey = '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80'
const publisher: Hex = '0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266'

/** Changes the chain and the clock, which workers don't control. */
export function createWorld(parameters: {
  subject: TestStore
  model: Model
  node: FakeChain
  chain: Chain
  clock: Clock & { advance(ms: number): void }
}) {
  const { subject, model, node, chain, clock } = parameters
  node.revertFor((event) => model.reverting.has(toKey(event)) && !model.wasPublished.has(toKey(event)))

  function rememberEvents() {
    for (const event of node.events()) model.wasPublished.add(toKey(event))
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
        rememberEvents()
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
        rememberEvents()
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
      }
    }
  }

  return { act, setFee, forgetNothing }
}

function orChainError(error: unknown): void {
  if (!(error instanceof ChainError)) throw error
}
