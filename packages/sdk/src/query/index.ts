export {
  meQueryOptions,
  proofQueryOptions,
  signAndSendMutationOptions,
  transactionsInfiniteQueryOptions,
  vaultsQueryOptions,
  walletQueryOptions,
} from './queryOptions.ts'
export { serviceKeys } from './serviceKeys.ts'
