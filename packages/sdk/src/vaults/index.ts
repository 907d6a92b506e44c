export * from './client.ts'
export { type UseVaultsReturnType, useVaults } from './useVaults.ts'
