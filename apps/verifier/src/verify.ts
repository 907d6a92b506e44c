import { vendorRoots } from '@countersign/attestation'
import { createSimulatedSatellite, simulatedRoots } from '@countersign/attestation/simulator'
import {
  type Anchors,
  type AttestationReceiptV1,
  checkReceipt,
  parseReceipt,
  type ReceiptCheck,
  type Step,
  type StepId,
} from '@countersign/receipt'
import { createChainReader } from './createChainReader.ts'
import { createRpc, type Rpc } from './createRpc.ts'
import { about, type ExitCode, exitCodes, VerifierError } from './errors.ts'
import type { FetchDeps } from './fetchBytes.ts'
import { chooseFreshCollateral, loadCollateral, readCollateralFile } from './loadCollateral.ts'
import { type LoadedReceipt, loadReceipt } from './loadReceipt.ts'
import { type Manifest, type ManifestContract, parseManifest } from './parseManifest.ts'
import type { VerifyOptions } from './parseOptions.ts'
import { readFileBounded } from './readFileBounded.ts'
import { recogniseSubject } from './recogniseSubject.ts'
import { releaseManifest } from './releaseManifest.ts'
import { toAnchors } from './toAnchors.ts'
import { toPolicy } from './toPolicy.ts'

/** `subject` is ours: whether the receipt is about what the reader asked about. */
export type VerifierStep = Omit<Step, 'id'> & { id: StepId | 'subject' }

export type Outcome = Pick<ReceiptCheck, 'verdict' | 'isMock' | 'isKnownCode' | 'cid'> & {
  exitCode: ExitCode
  steps: readonly VerifierStep[]
  receipt: AttestationReceiptV1
  /** What could not be fetched, and why. */
  problems: readonly string[]
}

const MAX_MANIFEST_BYTES = 1_048_576

/** Gathers all that a receipt is held against, and judges it. */
export async function verify(deps: FetchDeps, options: VerifyOptions): Promise<Outcome> {
  const { isOffline, at } = options
  const manifests = [releaseManifest, ...(await readManifest(options.manifestFile))]
  const files = await Promise.all(options.collateralFiles.map(readCollateralFile))
  const subject = await recogniseSubject(options.subject)
  const chain = await openChain(deps, options, manifests)

  const { api, gateways } = options
  const loaded = await loadReceipt(deps, { subject, api, gateways, chain, isOffline })
  const receipt = about(loaded.name, () => parseReceipt(loaded.bytes))
  const { collateral: cid } = receipt.signer
  const fresh = chooseFreshCollateral(files, { cid, at })
  const collateral = await loadCollateral(deps, { ...loaded, cid, files, isOffline })

  const anchors: Anchors = {
    ...toAnchors(options, manifests),
    ...(chain === undefined ? {} : { contract: chain.contract }),
  }
  const check = await checkReceipt(loaded.bytes, collateral.bytes, {
    // With the simulator's roots mock evidence is told from forged evidence; it never counts as hardware.
    roots: [...vendorRoots, ...simulatedRoots()],
    mockEntropyKeys: [createSimulatedSatellite().publicKey],
    anchors,
    policy: toPolicy(options, manifests),
    ...(loaded.cid === undefined ? {} : { cid: loaded.cid }),
    ...(chain === undefined ? {} : { chain: createChainReader(chain.rpc, chain) }),
    ...(at === undefined || fresh === undefined ? {} : { reevaluation: { at, collateral: fresh.bytes } }),
  })
  const subjectStep = checkSubject(loaded.transaction, receipt)
  const verdict = subjectStep?.status === 'fail' ? 'failed' : check.verdict
  const { isMock, isKnownCode } = check
  return {
    verdict,
    isMock,
    isKnownCode,
    cid: check.cid,
    exitCode: toVerdictCode({ verdict, isKnownCode, isMockAllowed: options.isMockAllowed }),
    steps: subjectStep === undefined ? check.steps : [...check.steps, subjectStep],
    receipt,
    problems: collateral.problems,
  }
}

/** Worst first: what failed, what could not be judged, what is only simulated, what is genuine but unknown. */
function toVerdictCode(outcome: Pick<Outcome, 'verdict' | 'isKnownCode'> & { isMockAllowed: boolean }): ExitCode {
  const { verdict, isKnownCode, isMockAllowed } = outcome
  switch (verdict) {
    case 'failed':
      return exitCodes.failed
    case 'incomplete':
      return exitCodes.unavailable
    case 'mock':
      if (!isMockAllowed) return exitCodes.mock
      return isKnownCode ? exitCodes.verified : exitCodes.unknownCode
    case 'unknown-code':
      return exitCodes.unknownCode
    case 'verified':
      return exitCodes.verified
  }
}

/**
 * A pointer may lead to a genuine receipt of something else: an event under one transaction's hash to the receipt of
 * another, or a proof page that shows one and links the other.
 */
function checkSubject(
  asked: LoadedReceipt['transaction'],
  { transaction }: AttestationReceiptV1,
): VerifierStep | undefined {
  if (asked === undefined) return undefined
  const { txHash, chainId = transaction.chainId, walletAddress = transaction.from } = asked
  const isSame = transaction.txHash === txHash && transaction.chainId === chainId && transaction.from === walletAddress
  return {
    id: 'subject',
    title: 'The receipt is about the transaction that was asked for',
    ...(isSame
      ? { status: 'pass', detail: `Both are about ${txHash}.` }
      : {
          status: 'fail',
          detail: `Asked for was ${txHash} of ${walletAddress} on chain ${chainId}; the receipt is about ${transaction.txHash} of ${transaction.from} on chain ${transaction.chainId}.`,
        }),
  }
}

async function readManifest(path: string | undefined): Promise<Manifest[]> {
  if (path === undefined) return []
  const bytes = await readFileBounded(path, { maxBytes: MAX_MANIFEST_BYTES })
  return [
    about(path, () => {
      if (bytes.length > MAX_MANIFEST_BYTES) {
        throw new VerifierError('manifest_malformed', 'malformed manifest', { details: 'larger than 1 MiB' })
      }
      return parseManifest(new TextDecoder().decode(bytes))
    }),
  ]
}

/** The node, and the contract on its chain: the one that the reader names, or the manifest's. */
async function openChain(
  deps: FetchDeps,
  { rpc: url, contract }: VerifyOptions,
  manifests: readonly Manifest[],
): Promise<{ rpc: Rpc; contract: string; fromBlock: number } | undefined> {
  if (url === undefined) return undefined
  const rpc = createRpc(deps, { url })
  const listed = manifests.flatMap(({ contracts }) => contracts)
  if (listed.length === 0) {
    if (contract === undefined) throw needsContract('no manifest names one')
    return { rpc, contract, fromBlock: 0 }
  }
  const chainId = await rpc.getChainId()
  const onChain = listed.filter((entry) => entry.chainId === chainId)
  const entry: ManifestContract | undefined =
    contract === undefined ? onChain.at(-1) : onChain.find(({ address }) => address === contract)
  const address = contract ?? entry?.address
  if (address === undefined) throw needsContract(`the manifest names none on chain ${chainId}`)
  return { rpc, contract: address, fromBlock: entry?.fromBlock ?? 0 }
}

function needsContract(details: string) {
  return new VerifierError('invalid_arguments', '--rpc needs --contract', { details })
}
