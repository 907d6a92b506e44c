/**
 * A pinned root of trust (evidence.md, section 2). The certificate comes with the evidence. It must hash to `certificateSha256` and
 * have `publicKey`. All values are lower-case hex.
 */
export type TrustedRoot = {
  vendor: 'intel' | 'amd'
  /** The subject's common name, for display. */
  name: string
  /** `mock` marks a development root: evidence under it proves nothing about hardware. */
  mode: 'hardware' | 'mock'
  /** SHA-256 of the DER certificate. */
  certificateSha256: string
  /** The DER SubjectPublicKeyInfo. */
  publicKey: string
}

/**
 * Intel SGX Root CA, the root of every SGX and TDX platform certificate, TCB info and revocation list.
 * Source: https://certificates.trustedservices.intel.com/Intel_SGX_Provisioning_Certification_RootCA.cer
 * (serial 22650cd65a9d3489f383b49552bf501b392706ac, valid from 2018-05-21 to 2049-12-31).
 */
export const intelSgxRootCa: TrustedRoot = {
  vendor: 'intel',
  name: 'Intel SGX Root CA',
  mode: 'hardware',
  certificateSha256: '44a0196b2b99f889b8e149e95b807a350e7424964399e885a7cbb8ccfab674d3',
  publicKey:
    '3059301306072a8648ce3d020106082a8648ce3d030107034200040ba9c4c0c0c86193a3fe23d6b02cda10a8bbd4e88e48b4' +
    '458561a36e705525f567918e2edc88e40d860bd0cc4ee26aacc988e505a953558c453f6b0904ae7394',
}

/** AMD root key of third-generation EPYC (7003). Source: https://kdsintf.amd.com/vcek/v1/Milan/cert_chain (second certificate). */
export const arkMilan: TrustedRoot = {
  vendor: 'amd',
  name: 'ARK-Milan',
  mode: 'hardware',
  certificateSha256: '69d063b45344d26a2e94e1f4210de49ef555308287d4c174445c95639a540bcd',
  publicKey:
    '30820222300d06092a864886f70d01010105000382020f003082020a0282020100d0b779d9124e75e88996a2b625db15983e' +
    'c592dba8b56c17d5f3605b8d5763d5f3d471214949a12f3f42bbd0c7465be02523716de618b2725fbf28f1d4c7d4d15e6d90' +
    'a894d447ac345b5ad644c0d2cccd8ac75873d8acaa4ee65d3e7e29f1916df73857ff73448704f2394737ad52d63bbc5fddfe' +
    'e9dc4352b1b64b3c6a278061ab2626503aee3d72525f8bd4734d4fee3f7c329a8e4bde6b3917461de239d8d6b3e66d81f8ef' +
    'af8ec0b4eb4777ee363d2c57ae38fe0c7ab8bcaa07e2d92e642aa83f685e9a3edb80650551eeedca1585cfe7d5e6260b5ca2' +
    '0d398262344ff3a2b4b86ecd5be965c2e9874a1d87fd483d7ab1dfe3278c3f7b03b7d7a6a19dff2f0ac57ee392c4c4cc03a0' +
    '6ca01e6a6de59bedf228871360c96c44c5cf72335b22f9ac072903fffc529e2bacb870648279443445b1d5471b410aecfa05' +
    '4392e54f86c9f321136062f338f18fbb2c6889627ae613cc5cadec5e901c6bbdad95f53250aa7377439de4b79be2422dfe80' +
    '27e69300b4174b62ac865b2e45cfacfc3367433d78dc6123249bda7a497e09eacf9e48d2edf7c21e2bd1935079319fc34dcc' +
    '054b72bb319eb0691cc3e968a8c6aad6a478b6319b3d8c42be90aaefe3a0a420a830d8addae2e8f4cd7c7c7cf5d2538c4fc9' +
    'd6014bd1645ced7970a6fbb3c77583e5990c14c372ef7a727f20b5e840f1df6e41f40b23df865d635a124565ab0203010001',
}

/** AMD root key of fourth-generation EPYC (9004, 8004, 97x4). Source: https://kdsintf.amd.com/vcek/v1/Genoa/cert_chain (second certificate). */
export const arkGenoa: TrustedRoot = {
  vendor: 'amd',
  name: 'ARK-Genoa',
  mode: 'hardware',
  certificateSha256: '4c6598d19c18719c5dfd4a7d335f674e5bfe1d8f800cea2cf270c10d103db2f1',
  publicKey:
    '30820222300d06092a864886f70d01010105000382020f003082020a0282020100dc277de52fee14eb9122c916f6fcfd5430' +
    '45ebd343405efda1184bfcbd8f5501a12b761d7c4060a45fc98b058506c4ff7d70e1cc0d35a772e4713ffb2dd8dc45f2978c' +
    '797ed10abf338759921e900e851e2b33412c37012830c65a8defdf9372af16c0d439e463050a5390009383fde2d2972e9f34' +
    'a31b7ce1a8721e82e673f2eab06b29fa8ab5073e0f3ec60bc131b888c29569a4fdd3fa19e08f2889b4abbbddaf26196a58ed' +
    'bb77f47173789433284d7864e83af831fe2528e201a91bad4d0e990452f233b8a71a331f08753a568360c5e92c05d0881531' +
    'f7e7bed26603af01c09356a351383cb25d68f7c189f709a6e045c0d55020f404557dda3fcf47252a7c61b63d972492e8f955' +
    '12a4c106d6909a2e004c698c47e9f62bf7be240854d868fb8c8a4984e91d1fd7e2ad00e79a50364857c9fc27349863735bd4' +
    '66221c8e527345a1c966911865dff01053962cf50b1a9f58d3fc48b24fea42a669c0fb2f5e76f84309b386f05da8c4719175' +
    '3064ca5ba782b917246622c06ad1f246a2aafecd37c42138132a62371bae412bd1ff1030a925212e6bb8e7ea94b302070f09' +
    '2c1dcb923a5682d0fb3a9c64cd2b2884de3b5289bce9163a969ef683c7971cfd6a62b9ef873686d52ef4bf0e8e91b69a0bd1' +
    '23887fee1e0009406c689fbbb443bc60a1111603f7bb25c050c0b83cd07abfb1b46ea9eb31cfbc01592636e7870203010001',
}

/** AMD root key of fifth-generation EPYC (9005). Source: https://kdsintf.amd.com/vcek/v1/Turin/cert_chain (second certificate). */
export const arkTurin: TrustedRoot = {
  vendor: 'amd',
  name: 'ARK-Turin',
  mode: 'hardware',
  certificateSha256: '1f084161a44bb6d93778a904877d4819cafa5d05ef4193b2ded9dd9c73dd3f6a',
  publicKey:
    '30820222300d06092a864886f70d01010105000382020f003082020a0282020100c1a02b881ec422e55ce19075c03dd87c3c' +
    '4bfbd7b24bbfa2ce6d098f75bbef63483425a5f018f7c3f243d998e66d1c56748abfe1df626ab08aa2b5e5a09501d6345d83' +
    '1a9c713c7568ea22838fb6c355e1555253ecae39ef04f964b3498106b1a9af44b64c2377afbdb0e86508313d978de4434476' +
    '06291525afeecb254e4b0124e70e6d5ca3ae1bd8efaba42d00c25ab16dfcc25a910da2841ad67d554806a27dbb66e2f8b132' +
    '6e0bf6b3cfdfe2401c3c9048a5cce97de4089391e6398d21010d66c0aa7664e6a94cee4212286db4920426d789a134a0c8da' +
    '9da8b9afb3b801bb8b9d9ea68445d867d4d13624ff27febc2341dad9de721150b8fd9ef1b2e4f7965da8f8bdfd45b0e095e3' +
    'b5d100e2ed896299524943d05405cab7a2d5aae8ed25c339f492abdaed1743be4ac3170ca75e604978417c89ef3c0c2e018e' +
    '1d130c06a93f28220e1eb0f1f012c98286161e0c8c4f1bd4787f1f4ed2aea9f066fe1d7953892e3b3fd60d78ea6274e50acc' +
    '397f4b53afca10ed48bf0b25cdb84004c5c9da3f883fca51dbc54d1943d1cae400c9192e8590f212c319ce816495ec75ded9' +
    '7f67b8516ded23fd6887fdaddb73addf3ca14dcbf98036c006ed0b8d57bdf2e4674b5e523302bffe526df5ee41a8abe00019' +
    '12a0005ff81e1516d3d5117d3282b61a15a23d8b9001af19d5066cd7a516f6d622353653427ce1943c8855a5610203010001',
}

/** The roots of real hardware. */
export const vendorRoots: readonly TrustedRoot[] = [intelSgxRootCa, arkMilan, arkGenoa, arkTurin]
