/** What the trial does, in this order. */
export const parts = ['database', 'balancer', 'backups'] as const
export type Part = (typeof parts)[number]

/** Undefined where one is none of them. */
export function parseParts(text: string): Part[] | undefined {
  const named = text.split(',')
  return named.every((name) => (parts as readonly string[]).includes(name)) ? (named as Part[]) : undefined
}
