export { type ToServiceAccountOptions, toServiceAccount } from './toServiceAccount.ts'
