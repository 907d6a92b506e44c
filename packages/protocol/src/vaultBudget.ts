import { boolean, type Infer, list, natural, nullable, object, wei } from './schema.ts'

/** What a payment of a vault was counted as. In the subject of a transaction, and in the content half of an opening. */
export const vaultBudget = object({
  /** The witnesses' time that chose the windows, in seconds since 1970. Null if every counted budget is for the vault's life. */
  time: nullable(natural),
  /** The change of the vault's state, from 1. */
  sequence: natural,
  /** The same digest was counted at most 10 minutes before, and is not counted again. */
  isRepeated: boolean,
  /** The budgets of the paid assets, by their index in the policy. Amounts are in the asset's smallest unit. */
  items: list(object({ budget: natural, window: natural, before: wei, after: wei })),
})
export type VaultBudget = Infer<typeof vaultBudget>
