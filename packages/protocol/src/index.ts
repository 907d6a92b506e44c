export { concatBytes, equalBytes, isZero } from './bytes.ts'
export { ServiceError, type ServiceErrorOptions } from './errors.ts'
export { fromHex, type Hex, toHex } from './hex.ts'
