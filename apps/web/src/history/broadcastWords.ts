import type { Broadcast } from './readBroadcast.ts'

/** For people; what went as it should needs no words. */
export const broadcastWords: Record<Exclude<Broadcast, 'included'>, { label: string; meaning: string }> = {
  waiting: { label: 'Waiting for a block', meaning: 'Sent, and not in a block yet.' },
  reverted: { label: 'Failed on the chain', meaning: 'It is in a block, but it failed: only the fee was paid.' },
  not_broadcast: {
    label: 'Not broadcast',
    meaning:
      'Signed, but the chain has not seen it: nothing was paid. Its signature is public, so it can still be sent.',
  },
  superseded: {
    label: 'Never sent',
    meaning: 'Another transaction of this wallet took its place: nothing was paid, and it can no longer be sent.',
  },
}
