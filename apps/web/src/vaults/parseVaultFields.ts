import { fromHex, isEd25519Key, isHex } from '@countersign/protocol'
import { getAddress, parseEther, parseUnits } from 'viem'
import type { Token } from '../config.ts'
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
  /** A token's address. Empty for the chain's coin. */
  asset: string
  periodS: string
  /** The agent's public key. */
  agentKey: string
}

export type VaultFieldErrors = Partial<Record<keyof VaultFields, string>>

/** A policy is limited to 16 KiB. */
const MAX_RECIPIENTS = 100

/** Parses the form, or returns an error for each wrong field. */
export function parseVaultFields(
  fields: VaultFields,
  { tokens, coin }: { tokens: readonly Token[]; coin: string },
): { terms: Terms } | { errors: VaultFieldErrors } {
  const { template } = fields
  const { limit, fee, agentKey } = trim(fields)
  const recipients = toLines(fields.recipients)
  const isAgent = template === 'budget'
  const token = tokens.find(({ address }) => isAgent && address === fields.asset)
  const asset = token ?? { symbol: coin, decimals: 18 }
  const isLimited = template !== 'list' || limit !== ''
  const errors = findErrors<keyof VaultFields>({
    // The token list is fixed when the page loads.
    asset: isAgent && fields.asset !== '' && token === undefined ? 'Unknown token. Choose another one.' : undefined,
    limit: isLimited ? findAmountFault(limit, { ...asset, isZeroAllowed: false }) : undefined,
    // The budget of an agent includes fees.
    fee: isAgent ? undefined : findAmountFault(fee, { symbol: coin, decimals: 18, isZeroAllowed: false }),
    recipients: template === 'list' || isAgent ? findListFault(recipients, template) : undefined,
    agentKey: isAgent ? findKeyFault(agentKey) : undefined,
  })
  if (errors) return { errors }
  const isOpen = template === 'approval' || template === 'limit' || recipients.length === 0
  return {
    terms: {
      template,
      limitWei: isLimited && !isAgent ? parseEther(limit) : null,
      feeWei: isAgent ? 0n : parseEther(fee),
      recipients: isOpen ? null : recipients.map((address) => getAddress(address)),
      approvals: template === 'limit' ? 0 : Number(fields.approvals),
      agent: isAgent
        ? {
            token: token?.address ?? null,
            limit: parseUnits(limit, asset.decimals),
            periodS: Number(fields.periodS),
            publicKey: agentKey.toLowerCase(),
          }
        : null,
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

function findKeyFault(text: string): string | undefined {
  if (text === '') return 'Create a key, or enter the agent’s public key.'
  const key = text.toLowerCase()
  if (!isHex(key, 32)) return 'Enter the 64 hex digits of an Ed25519 public key.'
  if (!isEd25519Key(fromHex(key))) return 'This isn’t an Ed25519 public key. Copy it again.'
}
