import { changeIn, type GoldenBlocks, type TamperingV2 } from './tamperedV2.ts'

/** A tampering of a receipt in the folder `receipt`. */
export type FaultTampering = TamperingV2<'attestation' | 'batch' | 'release'> & { receipt: string }

type FaultReceipt = 'transaction' | 'authorization' | 'vaults/wallet-address'

/** Faults that the schemas allow (receipt-v2.md, section 4), and some that they don't. */
export function createFaultTamperings(golden: Record<FaultReceipt, GoldenBlocks>): FaultTampering[] {
  const { attestation, batch, release } = golden.transaction
  const inReceipt = changeIn('attestation', false)
  const inBatch = changeIn('batch', true)
  const inRelease = changeIn('release', true)
  const of = (receipt: FaultReceipt, tamperings: TamperingV2<'attestation' | 'batch' | 'release'>[]) =>
    tamperings.map((tampering) => ({ receipt, ...tampering }))
  const { config, settings } = batch
  const [issuer] = config.issuers
  return [
    ...of('transaction', [
      inReceipt('a wallet without a session', 'statement', ['signer', 'statement', 'session'], 'none'),
      inReceipt(
        'a CID with set trailing bits',
        'blocks',
        ['signer', 'batch'],
        setTrailingBit(attestation.signer.batch),
      ),
      inReceipt('a CID of another codec', 'blocks', ['signer', 'batch'], toDagCbor(attestation.signer.batch)),
      inRelease(
        'a CID of the collateral with set trailing bits',
        'collateral',
        ['collateral'],
        setTrailingBit(release.collateral),
      ),
      inRelease(
        'a CID of the collateral with another codec',
        'collateral',
        ['collateral'],
        toDagCbor(release.collateral),
      ),
      inReceipt('a name of the source with a letter outside ASCII', 'format', ['entropy', 'source'], 'satélite'),
      inReceipt('a name of the source with 257 characters', 'format', ['entropy', 'source'], 'a'.repeat(257)),
      inBatch(
        'issuers out of order',
        'report-data',
        ['config', 'issuers'],
        [{ ...issuer, issuer: 'https://z.example' }, issuer],
      ),
      inBatch('an issuer twice', 'report-data', ['config', 'issuers'], [issuer, issuer]),
      inBatch('33 witnesses in the settings', 'blocks', ['settings', 'log'], {
        origins: ['log.example'],
        witnesses: Array.from({ length: 33 }, (_, index) => index.toString(16).padStart(64, '0')),
        quorum: 17,
      }),
      inBatch('a log in the settings without a proof', 'log', ['settings', 'log'], {
        origins: ['log.example'],
        witnesses: [settings.entropy[0]?.kind === 'satellite' ? settings.entropy[0].key : ''],
        quorum: 1,
      }),
    ]),
    ...of('authorization', [
      inReceipt('chain 0', 'format', ['subject', 'chainId'], 0),
      inReceipt('the high s', 'format', ['subject', 'signature'], `0x${'01'.repeat(32)}${'ff'.repeat(32)}1b`),
      inReceipt('another chain', 'digest', ['subject', 'chainId'], 1),
      inReceipt('code that the settings do not list', 'digest', ['subject', 'address'], `0x${'aa'.repeat(20)}`),
      inReceipt('another address stated', 'signature', ['signer', 'statement', 'address'], `0x${'11'.repeat(20)}`),
    ]),
    ...of('vaults/wallet-address', [
      inReceipt(
        'a public key that is not a point',
        'statement',
        ['signer', 'statement', 'publicKey'],
        `04${'11'.repeat(64)}`,
      ),
      inReceipt('approvals stated', 'statement', ['signer', 'statement', 'approvals'], '44'.repeat(32)),
      inReceipt('another address', 'statement', ['subject', 'address'], `0x${'11'.repeat(20)}`),
      inReceipt('a policy', 'statement', ['subject', 'policy'], '44'.repeat(32)),
    ]),
  ]
}

const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567'

/** The last of 58 characters has 3 bits of the hash and 2 zero bits. */
function setTrailingBit(cid: string): string {
  return cid.slice(0, -1) + BASE32[BASE32.indexOf(cid.slice(-1)) ^ 1]
}

/** The same hash with `01 71` instead of `01 55`. */
function toDagCbor(cid: string): string {
  return cid.replace(/^bafk/, 'bafy')
}
