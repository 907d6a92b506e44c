import type { PinnerConfig } from '../../publish/ipfs/config.ts'
import { createRemotePinner } from '../../publish/ipfs/createRemotePinner.ts'
import { PinError } from '../../publish/ipfs/pinError.ts'
import type { RemotePinner } from '../../publish/ipfs/pinner.ts'
import { type Check, type Context, type Finding, fault, ok, skipped, warning } from './check.ts'
import type { DatabaseView } from './database.ts'
import { explain, toShownUrl } from './reasons.ts'

/** Checks the pin service with the client that pins. It pins nothing. */
export function createPinsChecks(context: Context, { findPinnedCid }: Pick<DatabaseView, 'findPinnedCid'>): Check[] {
  const { subject, fetch } = context

  async function checkRemote(config: Exclude<PinnerConfig, { kind: 'helia' }>, signal: AbortSignal): Promise<Finding> {
    const where = `${config.kind} at ${toShownUrl(config.apiUrl ?? 'https://uploads.pinata.cloud')}`
    let pinner: RemotePinner
    try {
      pinner = createRemotePinner(config, fetch)
    } catch (error) {
      // The message names the invalid setting without its value.
      const reason = error instanceof TypeError ? error.message : 'invalid settings'
      return fault(`${config.kind}: ${reason}`, 'Correct IPFS_API_URL, IPFS_GATEWAY_URL and IPFS_API_TOKEN.')
    }
    try {
      const { version } = await pinner.probe({ signal })
      const about = version === undefined ? where : `${where}, version ${version}`
      const cid = await findPinnedCid()
      if (cid === undefined) return ok(`${about}: credentials accepted; no pinned block to read yet`)
      await pinner.read(cid, { signal })
      return ok(`${about}: credentials accepted, returned block ${cid.slice(0, 16)}…`)
    } catch (error) {
      if (!(error instanceof PinError)) throw error
      return describeError(error, where)
    }
  }

  return [
    {
      name: 'pins',
      settings: /^(IPFS_.*|WORKER|RPC_URL)$/,
      after: ['schema'],
      async run({ signal }) {
        const { pipeline } = subject
        if (pipeline === undefined) return skipped('this process doesn’t publish')
        return pipeline.pinner.kind === 'helia'
          ? checkEmbedded(pipeline.pinner, context)
          : checkRemote(pipeline.pinner, signal)
      },
    },
  ]
}

function checkEmbedded({ listen }: { listen: string | undefined }, { subject }: Context): Finding {
  if (listen !== undefined && !/^\/(ip4|ip6|dns4|dns6|dns)\/[^/]+\/tcp\/\d{1,5}$/.test(listen)) {
    return fault('IPFS_LISTEN is not a TCP multiaddress', 'Write it as /ip4/0.0.0.0/tcp/4001.')
  }
  const isReachable = listen !== undefined && !/^\/(ip4\/127\.|ip6\/::1\/)/.test(listen)
  if (subject.isProduction && !isReachable) {
    return warning(
      'the embedded IPFS node listens on loopback, so other nodes can’t fetch receipts',
      'Set IPFS_LISTEN to a public address, or use Kubo or Pinata.',
    )
  }
  return ok('embedded, starts with the service')
}

function describeError({ code, details = '' }: PinError, where: string): Finding {
  const [step, reason = ''] = details.split(': ')
  if (code === 'pin_refused') {
    return fault(
      `${where}: rejected credentials (${details})`,
      'Correct IPFS_API_TOKEN or its file. The token must allow pinning.',
    )
  }
  if (code === 'pin_not_found') {
    return fault(
      `${where}: a pinned receipt is missing`,
      'Check that its storage was not lost, and that this service pinned the receipt.',
    )
  }
  if (code === 'pin_mismatch')
    return fault(`${where}: returned other bytes than were pinned`, 'Don’t trust this service. Use another one.')
  const known = explain(reason)
  const text = known?.text ?? `no usable answer (${reason === '' ? step : `${step}, ${reason}`})`
  return fault(`${where}: ${text}`, `${known?.fix ?? 'Check that it is a working pin service'}, in IPFS_API_URL.`)
}
