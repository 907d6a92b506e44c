import type { WalletInfo } from '@countersign/sdk'
import { useCallback } from 'react'
import { HistoryCard } from '../history/HistoryCard.tsx'
import { useHistory } from '../history/useHistory.ts'
import { SendCard } from '../send/SendCard.tsx'
import { AccountCard } from './AccountCard.tsx'
import { SignedInPage } from './SignedInPage.tsx'
import { useBalance } from './useBalance.ts'

/** The wallet, signed in or not. */
export function WalletPage() {
  return <SignedInPage title="Wallet">{(signedIn) => <SignedIn {...signedIn} />}</SignedInPage>
}

function SignedIn({ wallet, onSessionLost }: { wallet: WalletInfo; onSessionLost: () => void }) {
  const balance = useBalance(wallet.address)
  const history = useHistory({ address: wallet.address, onSessionLost })
  const { refresh } = balance
  const { reload } = history
  const onChanged = useCallback(() => {
    void refresh()
    void reload()
  }, [refresh, reload])
  return (
    <div className="wallet-grid">
      <div className="area-account">
        <AccountCard wallet={wallet} balance={balance} />
      </div>
      <div className="area-send">
        <SendCard wallet={wallet} onChanged={onChanged} onSessionLost={onSessionLost} />
      </div>
      <div className="area-history">
        <HistoryCard history={history} />
      </div>
    </div>
  )
}
