import { parseTrust, type Trust, TrustError } from './trust.ts'

/** What the visitor typed. Lists have one item a line. */
export type AnchorFields = Record<AnchorField, string>

export type AnchorField =
  | 'measurements'
  | 'configHashes'
  | 'coordinatorMeasurements'
  | 'coordinatorConfigHashes'
  | 'entropyKeys'
  | 'address'
  | 'rpcUrl'
  | 'chainId'

export type AnchorFormResult =
  | { trust: Trust; faults: undefined }
  | { trust: undefined; faults: Partial<Record<AnchorField, string>> }

/** An empty field trusts nothing; only the node and its chain fall back to the operator's, since they are no anchors. */
export function parseAnchorForm(fields: AnchorFields, operator: Trust): AnchorFormResult {
  const { address, rpcUrl, chainId } = fields
  const isChainAsked = address.trim() !== ''
  const stated = {
    allowMock: operator.allowMock,
    measurements: toLines(fields.measurements),
    configHashes: toLines(fields.configHashes),
    coordinatorMeasurements: toLines(fields.coordinatorMeasurements),
    coordinatorConfigHashes: toLines(fields.coordinatorConfigHashes),
    entropyKeys: toLines(fields.entropyKeys),
    contract: isChainAsked
      ? {
          address,
          rpcUrl: rpcUrl.trim() === '' ? operator.contract?.rpcUrl : rpcUrl.trim(),
          chainId: chainId.trim() === '' ? operator.contract?.chainId : Number(chainId),
        }
      : undefined,
  }
  try {
    return { trust: parseTrust(stated), faults: undefined }
  } catch (error) {
    if (!(error instanceof TrustError)) throw error
    const faults: Partial<Record<AnchorField, string>> = {}
    for (const { member, fault } of error.faults) {
      const name = member.replace(/^contract\./, '').replace(/\[\d+\]$/, '') as AnchorField
      const line = /\[(\d+)\]$/.exec(member)?.[1]
      faults[name] ??= line === undefined ? `This is ${fault}.` : `Line ${Number(line) + 1} is ${fault}.`
    }
    return { trust: undefined, faults }
  }
}

function toLines(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
}
