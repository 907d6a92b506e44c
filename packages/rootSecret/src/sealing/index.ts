export { expand, extract } from './hkdf.ts'
export { hmacSha256 } from './hmacSha256.ts'
export { open, type Sealed, seal } from './hpke.ts'
export { createX25519Pair, exportX25519, importX25519Pair, isX25519Key, type X25519Pair } from './x25519.ts'
