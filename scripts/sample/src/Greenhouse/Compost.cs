namespace Greenhouse;

/// <summary>Where last year's harvest ends.</summary>
public sealed class Compost
{
    private double kilograms;

    public void Add(Harvest harvest)
    {
        if (harvest.IsGood())
            return;

        kilograms += harvest.Kilograms;
    }

    public double Ripe(int months)
    {
        while (months > 12)
            months -= 12;

        return kilograms * months / 12;
    }
}