import { useCallback } from 'react'
import { useHistory } from '../history/useHistory.ts'
import { useIncoming } from '../incoming/useIncoming.ts'
import { useBalance } from './useBalance.ts'

type AccountParameters = {
  address: `0x${string}`
  /** The wallet whose history lists the signatures. For a vault, its owner's wallet. */
  wallet: `0x${string}`
  onSessionLost: () => void
}

/** Balance, history and incoming payments of an address, with callbacks to reload them. */
export function useAccount({ address, wallet, onSessionLost }: AccountParameters) {
  const balance = useBalance(address)
  const history = useHistory({ address: wallet, onSessionLost })
  const { refresh } = balance
  const { reload } = history
  const incoming = useIncoming({ address, onFound: refresh })
  const { search } = incoming
  const onChanged = useCallback(() => {
    void refresh()
    void reload()
  }, [refresh, reload])
  const onFunded = useCallback(() => {
    void refresh()
    search()
  }, [refresh, search])
  return { balance, history, incoming, onChanged, onFunded }
}
