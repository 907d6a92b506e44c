export * from './core.ts'
export { type CollateralDescription, type CrlDescription, describeCollateral } from './tdx/describeCollateral.ts'
export { verifyEventLog } from './tdx/eventLog.ts'
