export {
  meQueryOptions,
  proofQueryOptions,
  signAndSendMutationOptions,
  transactionsInfiniteQueryOptions,
  walletQueryOptions,
} from './queryOptions.ts'
export { serviceKeys } from './serviceKeys.ts'
