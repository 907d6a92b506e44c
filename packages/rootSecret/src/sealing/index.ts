export { expand, extract, hmacSha256 } from './hkdf.ts'
export { open, type Sealed, seal } from './hpke.ts'
export { createX25519Pair, exportX25519, importX25519Pair, isX25519Key, type X25519Pair } from './x25519.ts'
