/** Whether a text can be a slug: the one spelling of 16 bytes in base64url, whose last digit has 2 significant bits. */
export function isSlug(text: string): boolean {
  return /^[A-Za-z0-9_-]{21}[AQgw]$/.test(text)
}
