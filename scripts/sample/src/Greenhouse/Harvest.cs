namespace Greenhouse
{
    /// <summary>What a season brings in.</summary>
    public sealed class Harvest
    {
        public Harvest(Season season, double kilograms)
        {
            Season = season;
            Kilograms = kilograms;
        }

        public Season Season { get; }

        public double Kilograms { get; }

        public bool IsGood()
        {
            if (Season == Season.Winter) return Kilograms > 1;
            return Kilograms > 10;
        }
    }
}
