import { snpProducts, snpTcbParts } from '@countersign/attestation'
import type { MinimumTcb } from './parseManifest.ts'

/** How people write the patch levels that they ask of a product, as an option or in a form. */
export const MINIMUM_TCB_FORM = 'PRODUCT:PART=LEVEL,…, such as Genoa:bl=10,snp=23,ucode=84'

/** One text for each product. One without levels cannot be written: it would ask for nothing. */
export function toMinimumTcbTexts(minimumTcb: MinimumTcb): string[] {
  return snpProducts.flatMap((product) => {
    const levels = snpTcbParts.flatMap((part) => {
      const level = minimumTcb[product]?.[part]
      return level === undefined ? [] : `${part}=${level}`
    })
    return levels.length === 0 ? [] : `${product}:${levels.join(',')}`
  })
}

/** The reverse; undefined where a text has another form, names no level or one twice, or two name one product. */
export function parseMinimumTcbTexts(texts: readonly string[]): MinimumTcb | undefined {
  const minimumTcb: Record<string, Record<string, number>> = {}
  for (const text of texts) {
    const [name, levels, ...more] = text.split(':')
    const product = snpProducts.find((candidate) => candidate === name)
    if (product === undefined || levels === undefined || more.length > 0 || minimumTcb[product]) return undefined
    const parts: Record<string, number> = {}
    for (const assignment of levels.split(',')) {
      const [, part = '', level] = /^([a-z]+)=(0|[1-9]\d{0,2})$/.exec(assignment) ?? []
      const isPart = (snpTcbParts as readonly string[]).includes(part)
      if (!isPart || Object.hasOwn(parts, part) || Number(level) > 255) return undefined
      parts[part] = Number(level)
    }
    minimumTcb[product] = parts
  }
  return minimumTcb
}
