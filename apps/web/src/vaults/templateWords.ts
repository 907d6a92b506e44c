import type { TemplateName } from './template.ts'

export type TemplateWords = { title: string; text: string; limitLabel: string }

/** The templates as people choose among them. */
export const templateWords: Readonly<Record<TemplateName, TemplateWords>> = {
  approval: {
    title: 'Approval above an amount',
    text: 'Small payments go at once. Whatever is more, to whomever, needs a passkey.',
    limitLabel: 'Without approval up to, in ETH',
  },
  limit: {
    title: 'A limit for each payment',
    text: 'No payment is ever above the limit. There is no passkey, and no way around it.',
    limitLabel: 'Each payment at most, in ETH',
  },
  list: {
    title: 'Only to a list of addresses',
    text: 'Payments go to the addresses that you name now, and to no other, ever.',
    limitLabel: 'Each payment at most, in ETH',
  },
  agent: {
    title: 'An agent with a schedule',
    text: 'A program pays by itself, so many times in each period. A passkey can move all to a second vault.',
    limitLabel: 'Each payment at most, in ETH',
  },
}
