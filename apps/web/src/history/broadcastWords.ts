import type { Broadcast } from './readBroadcast.ts'

/** For people; what went as it should needs no words. */
export const broadcastWords: Record<Exclude<Broadcast, 'included'>, { label: string; meaning: string }> = {
  waiting: { label: 'Waiting for a block', meaning: 'Sent, and not in a block yet.' },
  reverted: { label: 'Failed on the chain', meaning: 'It is in a block, but it failed: only the fee was paid.' },
  not_broadcast: {
    label: 'Not broadcast',
    meaning: 'Signed, but the node has not seen it. Its signature is public, so it can still be sent.',
  },
  unknown: {
    label: 'May have been paid',
    meaning:
      'Its number is used, but the node does not know this transaction. Look for it on an explorer before you pay again.',
  },
}
