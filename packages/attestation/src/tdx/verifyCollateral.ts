import { equalBytes } from '@countersign/protocol/core'
import { inOrder } from '../crypto.ts'
import { QuoteError } from '../errors.ts'
import type { TrustedRoot } from '../roots.ts'
import type { Certificate } from '../x509/parseCertificate.ts'
import type { Crl } from '../x509/parseCrl.ts'
import {
  assertNotRevoked,
  type CertificateReader,
  intersectWindows,
  isWithin,
  type ValidityWindow,
  verifyChain,
  verifyCrl,
} from '../x509/verifyChain.ts'
import { type Collateral, parseHexCrl, parseHexSignature } from './collateral.ts'
import { parseQeIdentity, type QeIdentity } from './qeIdentity.ts'
import { parseTcbInfo, type TcbInfo } from './tcbInfo.ts'

/** Genuine collateral. It is valid during `window`. */
export type VerifiedCollateral = {
  root: TrustedRoot
  rootCrl: Crl
  /** The issuer of `pckCrl` and of PCK certificates. */
  pckCa: Certificate
  pckCrl: Crl
  tcbInfo: TcbInfo
  qeIdentity: QeIdentity
  window: ValidityWindow
}

type Context = { reader: CertificateReader; roots: readonly TrustedRoot[]; at: number }

/** Verifies collateral independently of a quote (evidence.md, section 5). */
export async function verifyCollateral(context: Context, collateral: Collateral): Promise<VerifiedCollateral> {
  const { reader, at } = context
  const rootCrl = parseHexCrl(collateral.root_ca_crl)
  const pckCrl = parseHexCrl(collateral.pck_crl)
  const [pckCa, root] = readPair(reader, collateral.pck_crl_issuer_chain, /^Intel SGX PCK (Platform|Processor) CA$/)
  const tcbInfo = parseTcbInfo(collateral.tcb_info)
  const qeIdentity = parseQeIdentity(collateral.qe_identity)
  assertInDate(tcbInfo, at, 'tcb_info_not_in_date', 'TCB info not in date')
  assertInDate(qeIdentity, at, 'qe_identity_not_in_date', 'QE identity not in date')

  const [trustedRoot, rootCrlWindow, pckCrlWindow, tcbSigner, qeSigner] = await inOrder([
    verifyChain(reader, { ...context, chain: [pckCa, root] }),
    verifyCrl(reader, { crl: rootCrl, issuer: root, at }),
    verifyCrl(reader, { crl: pckCrl, issuer: pckCa, at }),
    verifySignedText(context, root, rootCrl, {
      text: collateral.tcb_info,
      signature: collateral.tcb_info_signature,
      chain: collateral.tcb_info_issuer_chain,
      code: 'tcb_info_signature_invalid',
      message: 'TCB info signature invalid',
    }),
    verifySignedText(context, root, rootCrl, {
      text: collateral.qe_identity,
      signature: collateral.qe_identity_signature,
      chain: collateral.qe_identity_issuer_chain,
      code: 'qe_identity_signature_invalid',
      message: 'QE identity signature invalid',
    }),
  ])
  assertNotRevoked(pckCa, rootCrl)

  const window = intersectWindows([
    ...[root, pckCa, tcbSigner, qeSigner],
    ...[rootCrlWindow, pckCrlWindow],
    ...[tcbInfo, qeIdentity].map(toWindow),
  ])
  return { root: trustedRoot, rootCrl, pckCa, pckCrl, tcbInfo, qeIdentity, window }
}

/** Verifies a JSON text that Intel signed with a TCB signing certificate. The root issued it and has not revoked it. */
async function verifySignedText(
  context: Context,
  root: Certificate,
  rootCrl: Crl,
  document: {
    text: string
    signature: string
    chain: string
    code: 'tcb_info_signature_invalid' | 'qe_identity_signature_invalid'
    message: string
  },
): Promise<Certificate> {
  const { reader } = context
  // Here and not in the caller, which has started other checks: they would fail without a handler.
  const signature = parseHexSignature(document.signature, document.code)
  // Otherwise a PCK certificate, whose key a platform has, could sign this text.
  const [signer, signerRoot] = readPair(reader, document.chain, /^Intel SGX TCB Signing$/)
  // A reader may trust simulated roots too, whose keys are public: they must not sign for real hardware.
  if (!equalBytes(signerRoot.der, root.der)) {
    throw new QuoteError('root_not_trusted', 'the chains of the collateral have different roots')
  }
  if (signer.isCa || signer.keyUsage?.digitalSignature !== true) {
    throw new QuoteError('certificate_chain_invalid', 'certificate chain invalid', { details: signer.commonName })
  }
  const [, isSigned] = await inOrder([
    verifyChain(reader, { ...context, chain: [signer, root] }),
    reader.isSignedBy(
      {
        tbs: new TextEncoder().encode(document.text),
        signatureAlgorithm: 'ecdsa-sha256',
        signature,
      },
      signer,
    ),
  ])
  if (!isSigned) throw new QuoteError(document.code, document.message)
  assertNotRevoked(signer, rootCrl)
  return signer
}

/** An issuer chain of exactly two certificates: the named one, and the root. */
function readPair(reader: CertificateReader, pem: string, name: RegExp): [Certificate, Certificate] {
  const [leaf, root, ...rest] = reader.readPem(pem)
  if (leaf === undefined || root === undefined || rest.length > 0) {
    throw new QuoteError('certificate_chain_invalid', 'certificate chain invalid', { details: 'not two certificates' })
  }
  if (!name.test(leaf.commonName)) {
    throw new QuoteError('certificate_chain_invalid', 'certificate chain invalid', { details: leaf.commonName })
  }
  return [leaf, root]
}

function toWindow(document: { issueDate: number; nextUpdate: number }): ValidityWindow {
  return { notBefore: document.issueDate, notAfter: document.nextUpdate }
}

function assertInDate(
  document: { issueDate: number; nextUpdate: number },
  at: number,
  code: 'tcb_info_not_in_date' | 'qe_identity_not_in_date',
  message: string,
) {
  if (!isWithin(toWindow(document), at)) throw new QuoteError(code, message)
}
