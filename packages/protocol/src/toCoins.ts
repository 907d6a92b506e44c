/** Wei in decimal as whole coins, to the last digit. */
export function toCoins(wei: string): string {
  const digits = BigInt(wei).toString().padStart(19, '0')
  const fraction = digits.slice(-18).replace(/0+$/, '')
  return `${digits.slice(0, -18)}${fraction === '' ? '' : `.${fraction}`}`
}
