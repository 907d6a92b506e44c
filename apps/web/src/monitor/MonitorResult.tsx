import type { Hex } from '@countersign/sdk'
import {
  createLogsMemory,
  createMonitorMemory,
  describeError,
  describeReport,
  type MonitorDeps,
  type MonitorReport,
  monitorVerdicts,
  monitorWallet,
  VerifierError,
} from '@countersign/verify'
import { useEffect, useState } from 'react'
import { findContract, readOperatorTrust } from '../anchors/trust.ts'
import { useConfig, type WebConfig } from '../config.ts'
import { Button } from '../ui/Button.tsx'
import { Notice } from '../ui/Notice.tsx'
import { fetchBytes } from '../worker/pageFetch.ts'

type State =
  | { phase: 'running'; judged: number; of: number }
  | { phase: 'done'; report: MonitorReport }
  | { phase: 'failed'; message: string }

const RUNNING: State = { phase: 'running', judged: 0, of: 0 }

const TONES = { alarm: 'bad', 'not-listed': 'warning', gap: 'warning', complete: 'good' } as const

/** Checks once when shown, and again on request. Accepted receipts aren't checked a second time. */
export function MonitorResult({ address }: { address: Hex }) {
  const config = useConfig()
  const [memory] = useState(createMonitorMemory)
  const [logs] = useState(createLogsMemory)
  const [turn, setTurn] = useState(0)
  const [state, setState] = useState<State>(RUNNING)

  // biome-ignore lint/correctness/useExhaustiveDependencies: a new turn looks again
  useEffect(() => {
    let isCurrent = true
    const set = (next: State) => {
      if (isCurrent) setState(next)
    }
    set(RUNNING)
    const onProgress = ({ checked, of }: { checked: number; of: number }) =>
      set({ phase: 'running', judged: checked, of })
    checkWallet({ config, memory, logs, onProgress }, address).then(
      (report) => set({ phase: 'done', report }),
      (error) => set({ phase: 'failed', message: describeError(error).message }),
    )
    return () => {
      isCurrent = false
    }
  }, [config, memory, logs, address, turn])

  return (
    <>
      {state.phase === 'running' ? (
        <p role="status">
          {state.of === 0 ? 'Searching the chain…' : `Checking receipts: ${state.judged} of ${state.of}`}
        </p>
      ) : null}
      {state.phase === 'failed' ? (
        <Notice tone="warning" title="The check failed" isAlert>
          <p>{state.message}</p>
        </Notice>
      ) : null}
      {state.phase === 'done' ? <ReportView report={state.report} /> : null}
      {state.phase === 'running' ? null : (
        <Button look="small" onClick={() => setTurn((before) => before + 1)}>
          Check again
        </Button>
      )}
    </>
  )
}

function ReportView({ report }: { report: MonitorReport }) {
  const { headline, findings, logs, unseen } = describeReport(report)
  return (
    <>
      <Notice tone={TONES[monitorVerdicts[report.conclusion].severity]} title={headline} isAlert>
        {logs.map((text) => (
          <p key={text}>{text}</p>
        ))}
        {findings.length === 0 ? null : (
          <ul>
            {findings.map(({ text }) => (
              <li key={text}>{text}</li>
            ))}
          </ul>
        )}
      </Notice>
      <p className="fine-print">
        {unseen} This check uses the operator’s anchors and node. For an independent check, run npm run monitor.
      </p>
    </>
  )
}

/** Per run. The next run continues after them. */
const MAX_RECEIPTS = 50
/** About 90 bytes each, plus tiles. Larger logs need the command line. */
const MAX_LOG_ENTRIES = 100_000

type CheckWalletDeps = Pick<MonitorDeps, 'memory' | 'logs' | 'onProgress'> & { config: WebConfig }

/** Checks a wallet with the site's anchors and nodes. */
async function checkWallet({ config, ...deps }: CheckWalletDeps, address: Hex): Promise<MonitorReport> {
  const { trust, fault } = readOperatorTrust(config)
  const { manifest, node, allowMock, tcbStatuses } = trust
  const contract = findContract(trust)
  if (node === undefined || contract === undefined) {
    throw new VerifierError(
      'invalid_arguments',
      'this site’s configuration has no contract or node',
      fault ? { details: fault } : {},
    )
  }
  // A site of a well-known chain may omit its node. The contract's node may be on the same chain.
  const rpc = config.rpcUrl ?? (node.chainId === config.chainId ? node.rpcUrl : undefined)
  if (rpc === undefined)
    throw new VerifierError('invalid_arguments', 'this site’s configuration has no node for the wallet’s chain')
  return monitorWallet(
    { fetchBytes, now: () => new Date(), ...deps },
    {
      address: address.toLowerCase(),
      rpc,
      chainId: config.chainId,
      eventsRpc: node.rpcUrl,
      manifests: [manifest],
      contract: contract.address,
      allowMock,
      tcbStatuses,
      api: config.apiBaseUrl,
      gateways: config.ipfsGatewayUrl === undefined ? [] : [config.ipfsGatewayUrl],
      log: config.apiBaseUrl,
      maxReceipts: MAX_RECEIPTS,
      maxLogEntries: MAX_LOG_ENTRIES,
    },
  )
}
