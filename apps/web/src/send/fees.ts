/** What fees may rise by between the last look and the signature: a half. */
const RISE = { numerator: 3n, denominator: 2n }

/** What to keep for a fee, so that it is still paid after such a rise. */
export function toReserve(feeWei: bigint): bigint {
  return (feeWei * RISE.numerator + RISE.denominator - 1n) / RISE.denominator
}

/** Whether a fee has risen by more than that. What was agreed to is a price too. */
export function isDearer(nowWei: bigint, agreedWei: bigint): boolean {
  return nowWei > toReserve(agreedWei)
}
