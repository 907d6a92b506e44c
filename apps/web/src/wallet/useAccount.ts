import { useCallback } from 'react'
import { useHistory } from '../history/useHistory.ts'
import { useIncoming } from '../incoming/useIncoming.ts'
import { useBalance } from './useBalance.ts'

type AccountParameters = {
  address: `0x${string}`
  /** Whose history has what the address signs: its own, or that of the wallet whose vault it is. */
  wallet: `0x${string}`
  onSessionLost: () => void
}

/** What an address holds, signed and received, and what is read again after a change of it. */
export function useAccount({ address, wallet, onSessionLost }: AccountParameters) {
  const balance = useBalance(address)
  const history = useHistory({ address: wallet, onSessionLost })
  const { refresh } = balance
  const { reload } = history
  const incoming = useIncoming({ address, onFound: refresh })
  const { look } = incoming
  const onChanged = useCallback(() => {
    void refresh()
    void reload()
  }, [refresh, reload])
  const onFunded = useCallback(() => {
    void refresh()
    look()
  }, [refresh, look])
  return { balance, history, incoming, onChanged, onFunded }
}
