import { createBlock } from '@ethereumjs/block'
import { createCustomCommon, Hardfork, Mainnet } from '@ethereumjs/common'
import { createTxFromRLP } from '@ethereumjs/tx'
import { createAccount, createAddressFromString } from '@ethereumjs/util'
import { createVM, runTx } from '@ethereumjs/vm'
import { bytesToHex, type Hex, hexToBytes } from 'viem'

/** The effects of a transaction, as both EVMs report them. */
export type Execution = {
  hash: Hex
  from: Hex
  isSuccess: boolean
  gasUsed: bigint
  logs: { address: Hex; topics: Hex[]; data: Hex }[]
}

/** The block fields that a transaction can read. */
export type BlockHeader = Record<'number' | 'timestamp' | 'baseFeePerGas' | 'gasLimit', bigint> & { coinbase: Hex }

/** EthereumJS on a chain with only funded accounts. `startChain` uses another implementation, in Rust. */
export async function createSecondEvm({ chainId, funded }: { chainId: number; funded: ReadonlyMap<Hex, bigint> }) {
  const common = createCustomCommon({ chainId }, Mainnet, { hardfork: Hardfork.Osaka })
  const vm = await createVM({ common })
  for (const [address, balance] of funded) {
    await vm.stateManager.putAccount(createAddressFromString(address), createAccount({ balance }))
  }
  return {
    /** Rejects if no block can have this transaction. */
    async run(raw: Hex, header: BlockHeader): Promise<Execution> {
      const tx = createTxFromRLP(hexToBytes(raw), { common })
      const block = createBlock({ header }, { common })
      const { execResult, totalGasSpent, receipt } = await runTx(vm, { tx, block })
      return {
        hash: bytesToHex(tx.hash()),
        from: tx.getSenderAddress().toString(),
        isSuccess: execResult.exceptionError === undefined,
        gasUsed: totalGasSpent,
        logs: receipt.logs.map(([address, topics, data]) => ({
          address: bytesToHex(address),
          topics: topics.map((topic) => bytesToHex(topic)),
          data: bytesToHex(data),
        })),
      }
    },

    async call(to: Hex, data: Hex): Promise<Hex> {
      const { execResult } = await vm.evm.runCall({ to: createAddressFromString(to), data: hexToBytes(data) })
      return bytesToHex(execResult.returnValue)
    },

    async getAccount(address: Hex): Promise<{ balance: bigint; nonce: number; code: Hex }> {
      const key = createAddressFromString(address)
      const account = await vm.stateManager.getAccount(key)
      const code = bytesToHex(await vm.stateManager.getCode(key))
      return { balance: account?.balance ?? 0n, nonce: Number(account?.nonce ?? 0n), code }
    },
  }
}
