import { hashOrigin } from '@countersign/log'
import { fromHex, isLoopbackUrl, toLogId } from '@countersign/protocol'
import { toCid } from '@countersign/receipt'
import { ChainError } from '../../publish/chain/chainError.ts'
import { encodePublish } from '../../publish/chain/contract.ts'
import { createViemChain, type ViemChain } from '../../publish/chain/viemChain.ts'
import { type Check, type Context, type Finding, fault, ok, skipped, warning } from './check.ts'
import { explain } from './reasons.ts'

const SETTINGS =
  /^(RPC_URL|CHAIN_ID|ATTESTATIONS_ADDRESS|PUBLISHER_PRIVATE_KEY.*|PUBLISH|LOG_WITNESS_(ADDRESS|OWNER)|WORKER)$/
/** Warns if the balance pays for fewer publications of one proof each. */
const FEW = 100n
const WEI = 10n ** 18n
const OLD_MS = 300_000
const TOO_OLD_MS = 3_600_000

/** A sample publication, to estimate its price. It is never sent. */
const SAMPLE = encodePublish([
  { wallet: `0x${'11'.repeat(20)}`, txHash: `0x${'22'.repeat(32)}`, ipfsCid: toCid(new Uint8Array()) },
])

/** Checks the chain with the client that publishes. It sends no transaction. */
export function createChainChecks(
  { subject, clock, fetch, times, timeoutMs }: Context,
  { listOrigins }: { listOrigins(): Promise<readonly string[]> },
): Check[] {
  const { pipeline } = subject
  let made: ViemChain | undefined

  /** Errors of the chain client quote neither URL nor key. */
  const guarded = (run: (chain: ViemChain) => Promise<Finding>) => async (): Promise<Finding> => {
    if (pipeline === undefined) return skipped('this process doesn’t publish')
    const { confirmations: _, ...config } = pipeline.chain
    try {
      made ??= createViemChain({ ...config, fetch, timeoutMs })
      return await run(made)
    } catch (error) {
      if (error instanceof TypeError) {
        return fault(error.message, 'Correct RPC_URL, ATTESTATIONS_ADDRESS or the publisher’s key.')
      }
      if (!(error instanceof ChainError)) throw error
      return describeError(error)
    }
  }

  async function checkChain(chain: ViemChain): Promise<Finding> {
    await chain.assertReady()
    return ok(`chain ${chain.chainId}, contract ${chain.contract}, publisher ${chain.account}`)
  }

  /** Each log of the database. An origin that isn't in use yet may be missing. */
  async function checkLogs(chain: ViemChain): Promise<Finding> {
    const { logWitness } = pipeline ?? {}
    if (logWitness === undefined) return skipped('PUBLISH is events')
    const { contract, owner } = logWitness
    const origins = await listOrigins()
    if (origins.length === 0)
      return warning('the database has no log yet', 'Start the coordinators, then run the doctor again.')
    const refused: string[] = []
    for (const origin of origins) {
      const log = await chain.readLog({ contract, id: toLogId(owner, fromHex(hashOrigin(origin))) })
      if (log.publisher !== chain.account) refused.push(origin)
    }
    if (refused.length === 0) return ok(`${contract}, ${origins.length} logs of ${owner}`)
    const options = [
      `--address ${contract} --publisher ${chain.account}`,
      ...refused.map((origin) => `--origin ${origin}`),
    ]
    const command = `npm run deploy:contract -- --contract LogWitness ${options.join(' ')}`
    return fault(
      `${chain.account} is not the publisher of ${refused.join(', ')}`,
      `Register these logs with the key of ${owner} (${command}), have it call rotatePublisher, or correct LOG_WITNESS_OWNER.`,
    )
  }

  async function checkBalance(chain: ViemChain): Promise<Finding> {
    const [balance, { maxFeePerGas }, gas] = await Promise.all([
      chain.getBalance(),
      chain.getFees(),
      // Some nodes don't estimate gas for an empty account.
      chain.estimateGas({ to: chain.contract, data: SAMPLE }).catch((error: unknown) => {
        if (error instanceof ChainError && error.code === 'insufficient_funds') return 60_000n
        throw error
      }),
    ])
    return evaluateBalance({ account: chain.account, balance, price: gas * maxFeePerGas })
  }

  async function checkHead(chain: ViemChain): Promise<Finding> {
    const from = clock.now()
    const at = await chain.getHeadTime()
    const until = clock.now()
    // A block is older than our view of it, so it can only show that our clock is behind.
    if (at > until) times.note({ source: 'the chain', at, from, until, precisionMs: 1000 })
    const isLocal = !subject.isProduction && isLoopbackUrl(pipeline?.chain.rpcUrl ?? '')
    return evaluateHead({ ageMs: until - at, isLocal })
  }

  return [
    { name: 'chain', settings: SETTINGS, run: guarded(checkChain) },
    { name: 'checkpoints', settings: SETTINGS, needs: ['chain'], uses: ['database'], run: guarded(checkLogs) },
    { name: 'balance', settings: SETTINGS, needs: ['chain'], run: guarded(checkBalance) },
    { name: 'chain-head', settings: SETTINGS, needs: ['chain'], run: guarded(checkHead) },
  ]
}

export function evaluateBalance(parameters: { account: string; balance: bigint; price: bigint }): Finding {
  const { account, balance, price } = parameters
  const count = price === 0n ? FEW : balance / price
  const ether = (Number((balance * 1_000_000n) / WEI) / 1_000_000).toString()
  const fix = `Send funds to ${account}.`
  if (count < 1n) return fault(`${ether} ether, not enough for one publication at current fees`, fix)
  const text = `${ether} ether, enough for about ${count} publications of one proof at twice the current fees`
  return count < FEW ? warning(text, fix) : ok(text)
}

export function evaluateHead({ ageMs, isLocal }: { ageMs: number; isLocal: boolean }): Finding {
  const minutes = Math.floor(ageMs / 60_000)
  // A local chain creates blocks only for transactions.
  if (isLocal || ageMs < OLD_MS)
    return ok(`the newest block is ${minutes < 1 ? 'less than a minute' : `${minutes} minutes`} old`)
  const text = `the newest block is ${minutes} minutes old`
  const fix = 'Check whether the node at RPC_URL follows the chain, or use another one.'
  return ageMs < TOO_OLD_MS ? warning(text, fix) : fault(text, fix)
}

function describeError({ code, details = '', message }: ChainError): Finding {
  const text = details === '' ? message : `${message}: ${details}`
  if (code !== 'chain_unavailable') return fault(text, FIXES[code] ?? 'See docs/run/monitoring-and-runbooks.md.')
  const known = explain(details.split(': ').at(-1))
  return fault(
    known === undefined ? text : `the RPC: ${known.text}`,
    `${known?.fix ?? 'Check that it is a working RPC and that its key is valid'}, in RPC_URL.`,
  )
}

const FIXES: Partial<Record<ChainError['code'], string>> = {
  chain_mismatch: 'Correct CHAIN_ID, or set RPC_URL to an RPC of that chain.',
  contract_missing:
    'Correct ATTESTATIONS_ADDRESS or LOG_WITNESS_ADDRESS, or deploy the contract: npm run deploy:contract -- --help.',
  publisher_not_allowed:
    'Use the publisher’s key, or ask the contract’s owner to call rotatePublisher with this account.',
  call_reverted: 'ATTESTATIONS_ADDRESS is another contract or another release of it: correct the address.',
  insufficient_funds: 'Send funds to the publisher’s account.',
}
