import { deflateRawSync, inflateRawSync } from 'node:zlib'

/** Text found in nearly all packed bytes, the most frequent last. It must never change, because stored bytes can't be read without it. */
const COMMON = Buffer.from(
  '"revocations":"certificates":{"ek":"","ask":"","ark":""},"measurement":{"mrTd":"","rtmr0":"","rtmr1":"","rtmr2":"","rtmr3":"' +
    '"intent":{"proof":{"kms":{"quoteHex":"","eventLog":"UpToDate"mock"hardware"' +
    '"approvals":[],"policy":"","kind":"authorization""address""message""typed-data""off-chain","commitment":"' +
    '"chain":"","round":,"scheme":"","log":{"checkpoint":"","index":,"proof":["' +
    '{"batch":"bafkrei","collateral":"bafkrei","coordinator":"bafkrei","release":"bafkrei","version":"countersign-attestation/2"' +
    '{"entropy":{"publicKey":"","sequence":,"signatureHex":"","source":"","timestamp":"2026-","valueHex":"' +
    '"inclusion":{"leafIndex":0,"path":["","' +
    '"signed":{"kind":"transaction","subject":{"chainId":,"data":"0x","digestSigned":"0x","from":"0x","gas":"21000",' +
    '"maxFeePerGas":"000000000","maxPriorityFeePerGas":"000000000","nonce":,"signature":"0x","signedAt":"2026-",' +
    '"to":"0x","txHash":"0x","value":"0","chainId":' +
    '"statement":{"address":"0x","approvals":null,"coordinatorKey":"","digest":"0x","entropyHash":"","keyId":"","kind":"transaction",' +
    '"policy":null,"publicKey":"04","signedAt":"2026-","subject":"","type":"countersign/signing/v1","countersign/signing/v2","witness":"',
)
const OPTIONS = { level: 4, windowBits: 13, memLevel: 6 }

/** Bytes that the reader also has, such as other columns of the row. */
type Known = readonly (string | Uint8Array)[]

const toDictionary = (known: Known) =>
  Buffer.concat([COMMON, ...known.map((one) => (typeof one === 'string' ? Buffer.from(one) : one))])

export function packBytes(bytes: Uint8Array | string, known: Known = []): Buffer {
  return deflateRawSync(bytes, { ...OPTIONS, dictionary: toDictionary(known) })
}

/** Reverses `packBytes`, given the same `known`. */
export function unpackBytes(packed: Uint8Array, known: Known = []): Buffer {
  return inflateRawSync(packed, { dictionary: toDictionary(known) })
}
