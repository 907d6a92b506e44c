import type { Hex } from '@countersign/sdk'
import { getAddress, parseEther } from 'viem'
import { findAddressFault, findAmountFault } from '../send/parseFields.ts'
import { findErrors } from '../ui/useFieldErrors.ts'
import type { TemplateName, Terms } from './template.ts'

export type VaultFields = {
  template: TemplateName
  limit: string
  fee: string
  /** One address per line. */
  recipients: string
  approvals: string
  everyS: string
  count: string
  refuge: string
}

export type VaultFieldErrors = Partial<Record<keyof VaultFields, string>>

/** A policy is limited to 16 KiB. */
const MAX_RECIPIENTS = 100
const MAX_COUNT = 1_000_000

/** Parses the form, or returns an error for each wrong field. */
export function parseVaultFields(fields: VaultFields, coin: string): { terms: Terms } | { errors: VaultFieldErrors } {
  const { template } = fields
  const { limit, fee, count, refuge } = trim(fields)
  const recipients = toLines(fields.recipients)
  const asset = { symbol: coin, decimals: 18, isZeroAllowed: false }
  const isAgent = template === 'agent'
  const isLimited = template !== 'list' || limit !== ''
  const errors = findErrors<keyof VaultFields>({
    limit: isLimited ? findAmountFault(limit, asset) : undefined,
    fee: findAmountFault(fee, asset),
    recipients: template === 'list' || isAgent ? findListFault(recipients, template) : undefined,
    count: isAgent ? findCountFault(count) : undefined,
    refuge: isAgent ? findRefugeFault(refuge) : undefined,
  })
  if (errors) return { errors }
  const isOpen = template === 'approval' || template === 'limit' || recipients.length === 0
  return {
    terms: {
      template,
      limitWei: isLimited ? parseEther(limit) : null,
      feeWei: parseEther(fee),
      recipients: isOpen ? null : recipients.map((address) => getAddress(address)),
      approvals: template === 'limit' ? 0 : Number(fields.approvals),
      agent: isAgent ? { everyS: Number(fields.everyS), count: Number(count), refuge: refuge as Hex } : null,
    },
  }
}

function trim(fields: VaultFields): VaultFields {
  return Object.fromEntries(Object.entries(fields).map(([name, text]) => [name, text.trim()])) as VaultFields
}

function toLines(text: string): string[] {
  return text.split(/[\s,;]+/).filter((line) => line !== '')
}

function findListFault(recipients: readonly string[], template: TemplateName): string | undefined {
  if (recipients.length === 0) return template === 'list' ? 'Enter at least one address.' : undefined
  if (recipients.length > MAX_RECIPIENTS) return `Enter at most ${MAX_RECIPIENTS} addresses.`
  for (const [index, address] of recipients.entries()) {
    const fault = findAddressFault(address)
    if (fault !== undefined) return `Address ${index + 1}: ${fault}`
  }
}

function findCountFault(text: string): string | undefined {
  if (!/^[0-9]{1,7}$/.test(text) || Number(text) === 0) return 'Enter a whole number, such as 10.'
  if (Number(text) > MAX_COUNT) return `Enter at most ${MAX_COUNT} payments per period.`
}

function findRefugeFault(text: string): string | undefined {
  return text === '' ? 'Choose a second vault.' : findAddressFault(text)
}
